"""The demonstration data: texts written for this project, systems that really answer them and a rater model.
Plain Python; nothing here knows Django, and loading the folder into a project happens elsewhere."""
