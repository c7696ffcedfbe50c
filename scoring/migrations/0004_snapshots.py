import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_project_deleting"),
        ("scoring", "0003_annotating"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="evaluator",
            name="kind",
            field=models.CharField(
                choices=[
                    ("sentinel", "Sentinel"),
                    ("baseline", "Baseline"),
                    ("trained", "Trained"),
                    ("combined", "Combined"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="leaderboard",
            name="kind",
            field=models.CharField(
                choices=[
                    ("systems", "Systems"),
                    ("evaluators", "Evaluators"),
                    ("enhanced", "Evaluators by reference set"),
                    ("slices", "Evaluators by part of the items"),
                    ("matrix", "Evaluators against each other"),
                    ("aspects", "Evaluators by aspect"),
                    ("agreement", "Agreement"),
                ],
                max_length=10,
            ),
        ),
        migrations.CreateModel(
            name="Snapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=80)),
                ("title", models.CharField(max_length=200)),
                ("note", models.TextField(blank=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("systems", "Systems"),
                            ("evaluators", "Evaluators"),
                            ("enhanced", "Evaluators by reference set"),
                            ("slices", "Evaluators by part of the items"),
                            ("matrix", "Evaluators against each other"),
                            ("aspects", "Evaluators by aspect"),
                            ("agreement", "Agreement"),
                        ],
                        max_length=10,
                    ),
                ),
                ("params", models.JSONField(default=dict)),
                ("stamp", models.CharField(max_length=64)),
                ("table", models.JSONField(default=dict)),
                ("computed_at", models.DateTimeField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="snapshots", to="accounts.project"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "constraints": [models.UniqueConstraint(fields=("project", "slug"), name="one_snapshot")],
            },
        ),
    ]
