from unstuck.library.counsel import Advice as Advice
from unstuck.library.counsel import Attempt as Attempt
from unstuck.library.recovery import Recovery as Recovery
