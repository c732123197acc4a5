"""OpenCode on a Go command line tool: a release whose checks fail one after the other."""

# ruff: noqa: E501 - what people and programs say is not broken into lines

from __future__ import annotations

from handoff.earlier import earlier_work
from handoff.filler import listing, source
from handoff.story import Asked, Case, Changed, Event, Looked, Ran, Said, Searched, Wrote, plan

_GO_RED = """--- FAIL: TestExtractKeepsLinks (0.02s)
    extract_test.go:77: link target = "../../etc/passwd", want refusal
FAIL
FAIL\tgithub.com/example/tidyarc/internal/extract\t0.113s
ok  \tgithub.com/example/tidyarc/internal/index\t0.204s
FAIL"""
_LINT = """internal/extract/extract.go:131:9: Error return value of `out.Close` is not checked (errcheck)
internal/extract/extract.go:88:2: ineffectual assignment to mode (ineffassign)
2 issues."""

_EARLIER = (
    ("internal/index/index.go", "Index archives in parallel, 4 workers."),
    ("cmd/list.go", "tidyarc list --json please, one object a line."),
    ("internal/zstd/reader.go", "Read zstd archives with a dictionary."),
    ("cmd/root.go", "Exit status 3 when an archive is damaged."),
)

_BEFORE: tuple[Event, ...] = (
    Asked("Prepare release 1.9.0 of tidyarc. The checklist is in RELEASING.md."),
    Looked(
        "RELEASING.md",
        "# Releasing\n1. all checks green\n2. CHANGELOG.md\n3. tag vX.Y.Z, signed\n4. `make dist`\n5. homebrew formula\n",
    ),
    plan(
        doing="Get all checks green",
        left=(
            "Write CHANGELOG.md for 1.9.0",
            "Tag v1.9.0, signed",
            "Build with make dist",
            "Update the homebrew formula",
        ),
    ),
    Ran(
        "git log v1.8.3..HEAD --oneline",
        "a81c3de Refuse absolute paths\n77fe012 Read zstd archives\n0c4d9b1 Speed up the index\n5d2277c Fix typo",
    ),
    Ran("go test ./...", _GO_RED, 1),
    Said(
        "`TestExtractKeepsLinks` fails: a relative link may leave the target folder. That is a security hole in 0c4d9b1's neighbour a81c3de, not only a red test."
    ),
    Asked(
        "Good catch. Fix it before the release, and mention CVE-2026-31877 in the changelog, nothing about how to exploit it."
    ),
    Looked("internal/extract/extract.go", source("go", "extract", 60)),
    Searched("filepath.Join", listing("internal", ".go:31: filepath.Join(root, name)", 24), "internal"),
    Changed(
        "internal/extract/extract.go",
        "if filepath.IsAbs(link) {",
        "func insideRoot(root, target string) bool {\n\trel, err := filepath.Rel(root, target)\n\treturn err == nil && filepath.IsLocal(rel)\n}\n",
    ),
    Ran(
        "go test ./internal/extract/...",
        "./extract.go:92:16: undefined: filepath.IsLocale\nFAIL\tgithub.com/example/tidyarc/internal/extract [build failed]",
        1,
    ),
    Changed("internal/extract/extract.go", "filepath.IsLocale", "filepath.IsLocal"),
    Ran("go test ./internal/extract/...", "ok  \tgithub.com/example/tidyarc/internal/extract\t0.120s"),
    Ran("golangci-lint run", _LINT, 1),
    Changed(
        "internal/extract/extract.go",
        "out.Close()",
        'if err := out.Close(); err != nil {\n\treturn fmt.Errorf("close %s: %w", name, err)\n}',
    ),
    Ran(
        "golangci-lint run",
        "internal/extract/extract.go:88:2: ineffectual assignment to mode (ineffassign)\n1 issues.",
        1,
    ),
    Changed("internal/extract/extract.go", "mode := header.Mode", "mode := header.FileInfo().Mode()"),
    Ran("golangci-lint run", "0 issues."),
    Ran(
        "git commit -am 'Refuse links that leave the target folder'",
        "[release-1.9 e3b90c4] Refuse links that leave the target folder\n 2 files changed, 31 insertions(+), 7 deletions(-)",
    ),
    Ran(
        "go test -race ./...",
        "ok  \tgithub.com/example/tidyarc/internal/extract\t1.320s\nok  \tgithub.com/example/tidyarc/internal/index\t2.004s",
    ),
    plan(
        done=("Get all checks green",),
        doing="Write CHANGELOG.md for 1.9.0",
        left=("Tag v1.9.0, signed", "Build with make dist", "Update the homebrew formula"),
    ),
    Looked("CHANGELOG.md", "# Changelog\n\n## 1.8.3\n" + "\n".join(f"- fixed number {n}" for n in range(60))),
    Changed(
        "CHANGELOG.md",
        "## 1.8.3",
        "## 1.9.0\n- Security: links cannot leave the target folder (CVE-2026-31877)\n- zstd archives\n\n## 1.8.3",
    ),
    Asked("Do not push the tag yourself, I will. And the date in the changelog is the 12th of March."),
    Ran(
        "git tag -s v1.9.0 -m 'tidyarc 1.9.0'",
        "error: gpg failed to sign the data\nerror: unable to sign the tag",
        128,
    ),
    Said(
        "Signing fails here because no `gpg-agent` is running. I leave the tag for you and go on with `make dist`, since it reads the version from `VERSION` anyway."
    ),
    Ran(
        "make dist VERSION=1.9.0",
        "go build -ldflags '-X main.version=1.9.0' -o dist/tidyarc_linux_amd64\ndist/tidyarc_darwin_arm64: signing identity \"Developer ID\" not found\nmake: *** [dist/tidyarc_darwin_arm64] Error 1",
        2,
    ),
    Looked("Makefile", source("shell", "Makefile", 12)),
    Wrote(
        "scripts/sign-darwin.sh",
        "#!/bin/sh\nset -eu\n[ -n \"${SIGN_IDENTITY:-}\" ] || { echo 'unsigned build'; exit 0; }\n",
    ),
    Said(
        "`sign-darwin.sh` skips signing when `SIGN_IDENTITY` is empty, so the build goes through here and stays signed in CI."
    ),
)

_AFTER: tuple[Event, ...] = (
    Changed("Makefile", "codesign", "scripts/sign-darwin.sh  # SIGN_IDENTITY"),
    Ran("make dist VERSION=1.9.0", "ok"),
    Changed("CHANGELOG.md", "## 1.9.0", "## 1.9.0 (2026-03-12)  CVE-2026-31877"),
    Ran("golangci-lint run", "0 issues."),
    Ran("go test -race ./...", "ok"),
    Said(
        "`make dist` is through, unsigned without `SIGN_IDENTITY`. The tag v1.9.0 is yours to push; `insideRoot` is in e3b90c4."
    ),
    Changed("internal/extract/extract.go", "insideRoot", "// insideRoot refuses links, see CVE-2026-31877"),
    Wrote(
        "packaging/tidyarc.rb",
        "class Tidyarc < Formula\n  version '1.9.0'  # v1.9.0, SIGN_IDENTITY is not used here\nend",
    ),
)

CASE = Case(
    name="release",
    agent="opencode",
    folder="/home/maria/src/tidyarc",
    branch="release-1.9",
    before=(*earlier_work("go", "go vet ./...", _EARLIER), *_BEFORE),
    after=_AFTER,
    size=6000,
    extra={"decisions": ("skips signing when `SIGN_IDENTITY` is empty", "I leave the tag for you")},
)
