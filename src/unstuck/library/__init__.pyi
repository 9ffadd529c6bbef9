from unstuck.library.counsel import Advice as Advice
from unstuck.library.recovery import Recovery as Recovery
from unstuck.library.trying import Attempt as Attempt
