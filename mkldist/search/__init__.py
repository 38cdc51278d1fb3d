"""Search of hyperparameters: studies, what they propose, and the plan that it makes."""
