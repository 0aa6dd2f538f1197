"""How two trajectories are compared: the engine below the trajectory scorers."""
