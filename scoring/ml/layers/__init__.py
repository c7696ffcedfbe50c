"""Parts of networks that several evaluators use."""
