import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0002_kept"),
        ("scoring", "0002_trained"),
    ]

    operations = [
        migrations.AlterField(
            model_name="leaderboard",
            name="kind",
            field=models.CharField(
                choices=[
                    ("systems", "Systems"),
                    ("evaluators", "Evaluators"),
                    ("enhanced", "Evaluators by reference set"),
                ],
                max_length=10,
            ),
        ),
        migrations.CreateModel(
            name="AnnotationTrace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("before", models.FloatField(null=True)),
                ("after", models.FloatField(null=True)),
                ("in_training", models.BooleanField(default=False)),
                ("steps", models.JSONField(default=list)),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="annotation_traces",
                        to="annotation.item",
                    ),
                ),
                (
                    "set",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="traces",
                        to="annotation.referenceset",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("set", "item"), name="one_trace")],
            },
        ),
    ]
