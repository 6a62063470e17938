"""The protocols as a Flower app: parties that are processes of their own, and see only what is meant for them."""
