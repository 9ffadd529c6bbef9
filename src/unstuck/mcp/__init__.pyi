from unstuck.mcp.offer import serve as serve
