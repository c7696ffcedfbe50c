"""Perception Score (Gu, Wu & Yu 2021): can a trained reader tell a system's texts from the references?"""
