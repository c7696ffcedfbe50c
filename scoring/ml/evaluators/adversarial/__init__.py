"""The adversarial baseline: does a reader take a text for a person's or for a machine's?"""
