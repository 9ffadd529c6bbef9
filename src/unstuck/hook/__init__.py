"""Inside the agent: what a hook tells it after a failing call, when it goes in circles, and before it stops or destroys."""
