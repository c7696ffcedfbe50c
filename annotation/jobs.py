"""The kinds of background job of this room."""

from evalapp.common.jobs import Job, register

register(Job("import", "cpu", "annotation.pipelines.imports:run", "Check uploaded files and take them in."))
register(Job("export", "cpu", "annotation.pipelines.exports:run", "Write the project as an interchange folder."))
