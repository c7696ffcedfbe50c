"""The last rating and comparison of a project by an index, which leaderboards ask for on every page."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0007_sides_shown")]

    operations = [
        migrations.AddIndex("comparison", models.Index(fields=["project", "-id"], name="comparison_project")),
        migrations.AddIndex("rating", models.Index(fields=["project", "-id"], name="rating_project")),
    ]
