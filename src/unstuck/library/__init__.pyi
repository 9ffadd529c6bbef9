from unstuck.library.counsel import Advice as Advice
from unstuck.library.counsel import Past as Past
from unstuck.library.recovery import Recovery as Recovery
from unstuck.library.trying import Attempt as Attempt
