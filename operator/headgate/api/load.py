"""The way in for files: `SparkApplication`s out of YAML, or everything that is wrong with them.

`headgate validate` wants every finding of every file; `headgate local` and `headgate replay` want one
application or a refusal. Both come through here, so that a file means the same to each command.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from headgate.api.application import API_VERSION, GROUP, KIND, SparkApplication
from headgate.api.document import Document, Malformed, read_documents
from headgate.api.finding import Finding, Severity
from headgate.api.validation import validate
from headgate.errors import InvalidInputError, UsageError

OTHER_OPERATORS: Final = frozenset({"sparkoperator.k8s.io", "spark.apache.org"})
"""Groups of resources that people come with: Kubeflow's and Apache's."""


@dataclass(frozen=True)
class Resource:
    """One `SparkApplication` of a file: the model, unless it is refused, and what is to be said about it."""

    application: SparkApplication | None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class LoadedFile:
    """What a file holds. `findings` are about the file as a whole; those of its resources stand with them."""

    file: str
    resources: tuple[Resource, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        found = [*self.findings, *(finding for resource in self.resources for finding in resource.findings)]
        return tuple(sorted(found, key=lambda finding: finding.line or 0))

    @property
    def is_refused(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.all_findings)

    def require_good(self) -> None:
        """Raise InvalidInputError with every error where something in it is refused."""
        errors = [found.text(self.file) for found in self.all_findings if found.severity is Severity.ERROR]
        if errors:
            raise InvalidInputError("\n".join(["the resource is refused:", *errors]))


def load_application(path: Path) -> SparkApplication:
    """Return the one application of a file; raise InvalidInputError with every finding if it is refused."""
    loaded = load_file(path)
    loaded.require_good()
    applications = [resource.application for resource in loaded.resources if resource.application]
    if len(applications) != 1:
        raise InvalidInputError(
            f"{path}: holds {len(applications)} resources of kind {KIND}; give a file with one"
        )
    return applications[0]


def load_file(path: Path) -> LoadedFile:
    """Read a file; raise UsageError if there is none that can be read."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; give the path of a resource file") from None
    return load_bytes(raw, str(path))


def load_bytes(raw: bytes, file: str) -> LoadedFile:
    """Read the content of a file that is called `file` in findings."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return LoadedFile(file, findings=(Finding(Severity.ERROR, "is not UTF-8 text", line=line),))
    return load_text(text, file)


def load_text(text: str, file: str = "-") -> LoadedFile:
    """Read `text`, one or more YAML documents; other kinds are skipped with a note. Raises nothing."""
    resources: list[Resource] = []
    findings: list[Finding] = []
    for document in read_documents(text):
        match _examined(document):
            case Resource() as resource:
                resources.append(resource)
            case Finding() as finding:
                findings.append(finding)
    return LoadedFile(file, tuple(resources), tuple(findings))


def _examined(document: Document | Malformed) -> Resource | Finding:
    """Return a resource of ours, or why the document is none."""

    def error(message: str) -> Finding:
        return Finding(Severity.ERROR, message, line=document.line)

    if isinstance(document, Malformed):
        return error(f"malformed YAML: {document.message}")
    if not isinstance(document.content, dict):
        return error(f"holds no object; a resource starts with apiVersion: {API_VERSION}")
    kind, version = document.content.get("kind"), document.content.get("apiVersion")
    if kind is None or version is None:
        missing = "kind" if kind is None else "apiVersion"
        return error(f"has no {missing}; set apiVersion: {API_VERSION} and kind: {KIND}")
    if (group := str(version).partition("/")[0]) != GROUP:
        remedy = (
            f": it is of another operator. Here it is apiVersion: {API_VERSION}, the script in spec.main.file"
        )
        note = f"{version} {kind} skipped{remedy if group in OTHER_OPERATORS else ''}"
        return Finding(Severity.NOTE, note, line=document.line)
    if kind != KIND:
        return error(f"kind {kind} is not one of {GROUP}; set kind: {KIND}")
    application, findings = validate(document.content)
    placed = (replace(found, line=document.line_of(found.location)) for found in findings)
    return Resource(application, tuple(placed))
