"""The board in the browser and the page that can be saved."""
