from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('common', '0002_audit_chain'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='claim',
            field=models.BigIntegerField(db_default=0, default=0, editable=False),
        ),
    ]
