"""Characters without which a text holds no secret that `holdfast.base.redact` knows.

Apart from it, since the hook path can afford these substring searches but not the import of `re`.
"""

SECRET_NAMES = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "access-key",
    "auth_token",
    "auth-token",
    "authtoken",
    "access_token",
    "access-token",
    "accesstoken",
    "refresh_token",
    "refresh-token",
    "private_key",
    "private-key",
)

SIGNS = (
    "PRIVATE KEY",
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "AKIA",
    "ASIA",
    "AIza",
    "xox",
    "rk_live_",
    "rk_test_",
    "sk_live_",
    "sk_test_",
    "npm_",
    "pypi-",
    "eyJ",
    "://",
    "Bearer ",
    "bearer ",
)
"""A test keeps these in step with the forms of `holdfast.base.redact`."""


def may_hold_secret(text: str) -> bool:
    lowered = text.lower()
    return any(sign in text for sign in SIGNS) or any(name in lowered for name in SECRET_NAMES)
