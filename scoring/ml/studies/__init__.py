"""Studies: the tables of papers on evaluators, computed from several trainings on one split of the data.

`kinds` lists them, `steps` trains and measures one step, `table` joins the steps.
"""
