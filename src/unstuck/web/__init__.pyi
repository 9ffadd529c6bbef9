from unstuck.web.keeping import keep_page as keep_page
from unstuck.web.opened import serve_board as serve_board
