# ruff: noqa: E501 - a table, which reads worse when broken
"""Made-up secrets of each kind as they occur, and lines that only look like one.

Put together from random characters at run time, so that no scanner takes this file for a leak. `shapes` is
a pattern a kind: `{h40}` is 40 hexadecimal digits, `a` letters and digits, `u` the same with `_` and `-`,
`b` base64, `l` small letters and digits, `A` capitals and digits, `d` digits, `g` a UUID, `p` a password.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable

_LETTERS = string.ascii_letters + string.digits
_ALPHABETS = {
    "h": "0123456789abcdef",
    "a": _LETTERS,
    "u": _LETTERS + "_-",
    "b": _LETTERS + "+/",
    "l": string.ascii_lowercase + string.digits,
    "A": string.ascii_uppercase + string.digits,
    "d": "0123456789",
}

# `«…»` frames what must not be left, where that is not the whole.
SHAPES: dict[str, str] = {
    "anthropic": "sk-~ant-~api03-{u93}AA",
    "openai": "sk-~{a48}",
    "openai project": "sk-~proj-{u74}",
    "openrouter": "sk-~or-v1-{h64}",
    "deepseek": "sk-~{h32}",
    "github": "gh~p_{a36}",
    "github oauth": "gh~o_{a36}",
    "github app": "gh~s_{a36}",
    "github fine-grained": "github~_pat_{a22}_{a59}",
    "gitlab": "glp~at-{u20}",
    "gitlab deploy": "gl~dt-{u20}",
    "gitlab runner": "gl~rt-{u20}",
    "gitlab trigger": "gl~ptt-{h40}",
    "aws id": "AK~IA{A16}",
    "aws temporary id": "AS~IA{A16}",
    "aws secret": "aws_secret_access_key = «{b40}»",
    "aws secret json": '"SecretAccessKey": "«{b40}»"',
    "aws session": "AWS_SESSION_TOKEN=«IQoJb3JpZ2luX2Vj{b200}==»",
    "aws session bare": "«FwoGZXIvYXdzE{a12}{b200}»",
    "google key": "AI~za{u35}",
    "google token": "ya~29.a0{u120}",
    "google client": "GOC~SPX-{u28}",
    "google refresh": "1/~/0{u60}",
    "slack bot": "xo~xb-{d12}-{d13}-{a24}",
    "slack user": "xo~xp-{d12}-{d12}-{d13}-{h32}",
    "slack app": "xa~pp-1-{A11}-{d13}-{h64}",
    "slack webhook": "https://hooks.sl~ack.com/services/T{A8}/B{A10}/«{a24}»",
    "stripe": "sk_~live_{a24}",
    "mailersend": "ml~sn.{h64}",
    "cursor": "ke~y_{h64}",
    "datadog token": "ddp~at_{a22}_{a40}",
    "netbird": "nb~p_{a36}",
    "dbt": "db~tc_{u50}",
    "dbt user": "db~tu_{u50}",
    "aiven": "AV~NS_{u19}",
    "axiom": "xa~at-{g}",
    "riot": "RG~API-{g}",
    "statsig": "sec~ret-{a43}",
    "growthbook": "sec~ret_admin_{a43}",
    "jsr": "js~rp_{a40}",
    "exoscale": "EX~O{h24}",
    "klaviyo": "p~k_{h34}",
    "stripe organisation": "sk_~org_live_{a40}",
    "infura": "https://mainnet.infura.io/v3/«{h32}»",
    "authorization of another scheme": "Authorization: KakaoAK «{h32}»",
    "mysql from go": "app:«{a16}»@tcp(db.corp:3306)/app",
    "key of a query": "https://maps.corp/api?key=«{h32}»",
    "stripe restricted": "rk_~live_{a24}",
    "stripe webhook": "wh~sec_{a32}",
    "square": "sq0~atp-{u22}",
    "shopify": "shp~at_{h32}",
    "twilio": "S~K{h32}",
    "twilio token": "TWILIO_AUTH_TOKEN={h32}",
    "sendgrid": "S~G.{u22}.{u43}",
    "mailgun": "ke~y-{h32}",
    "mailchimp": "{h32}-us12",
    "brevo": "xkey~sib-{h64}-{a16}",
    "resend": "re~_{a8}_{a24}",
    "hugging face": "h~f_{a34}",
    "replicate": "r~8_{a37}",
    "groq": "gs~k_{a52}",
    "perplexity": "pp~lx-{a48}",
    "xai": "xa~i-{a80}",
    "nvidia": "nva~pi-{u64}",
    "langsmith": "lsv2~_pt_{h32}_{h10}",
    "pinecone": "pcs~k_{a5}_{a63}",
    "vault": "hv~s.{u24}",
    "vault old": "VAULT_TOKEN=s.{a24}",
    "docker": "dckr~_pat_{u27}",
    "docker auth": '{"auths": {"https://index.docker.io/v1/": {"auth": "«{basic}»"}}}',
    "npm": "np~m_{a36}",
    "npmrc": "//registry.npmjs.org/:_authToken=«{g}»",
    "pypi": "py~pi-AgEIcHlwaS5vcmc{u120}",
    "rubygems": "ruby~gems_{h48}",
    "nuget": "o~y2{l43}",
    "databricks": "da~pi{h32}",
    "digitalocean": "do~p_v1_{h64}",
    "doppler": "dp~.pt.{a43}",
    "dynatrace": "dt~0c01.{A24}.{A64}",
    "datadog": "DD_API_KEY={h32}",
    "datadog app": "DATADOG_APP_KEY={h40}",
    "new relic": "NR~AK-{A27}",
    "new relic licence": "{h36}NRAL",
    "grafana": "gl~sa_{a32}_{h8}",
    "sentry": "snt~ryu_{h64}",
    "sentry dsn": "https://«{h32}»@o{d6}.ingest.sentry.io/{d7}",
    "linear": "lin~_api_{a40}",
    "notion": "nt~n_{a46}",
    "figma": "fi~gd_{u40}",
    "airtable": "pa~t{a14}.{h64}",
    "atlassian": "ATA~TT3xFfGF0{u180}={A8}",
    "bitbucket": "AT~BB{a32}",
    "circleci": "CCI~PAT_{a22}_{h40}",
    "buildkite": "bk~ua_{h40}",
    "sonar": "sq~p_{h40}",
    "postman": "PM~AK-{h24}-{h34}",
    "pulumi": "pu~l-{h40}",
    "planetscale": "psc~ale_tkn_{u43}",
    "supabase": "sb~p_{h40}",
    "fly": "fm~2_{b120}",
    "heroku": "HEROKU_API_KEY={g}",
    "netlify": "nf~p_{a36}",
    "cloudflare": "CLOUDFLARE_API_TOKEN={u40}",
    "cloudflare header": "X-Auth-Key: «{h37}»",
    "tailscale": "ts~key-auth-{a12}-{a32}",
    "telegram": "{d10}:AA{u33}",
    "telegram url": "https://api.telegram.org/bot«{d9}:AA{u33}»/sendMessage",
    "discord": "M~T{u22}.{u6}.{u38}",
    "discord webhook": "https://discord.com/api/webhooks/{d18}/«{u68}»",
    "teams webhook": "https://acme.webhook.office.com/webhookb2/«{g}@{g}/IncomingWebhook/{h32}/{g}»",
    "twitter": "AAAAAAAAAAAAAAAAAAAAA{a80}",
    "facebook": "EA~A{a120}",
    "dropbox": "s~l.{u130}",
    "hubspot": "pa~t-na1-{g}",
    "typeform": "tf~p_{u44}",
    "launchdarkly": "sd~k-{g}",
    "okta": "Authorization: SSWS «00{u40}»",
    "1password": "op~s_eyJ{b250}",
    "age": "AGE-SECRET-~KEY-1{A58}",
    "openshift": "sha~256~~{u43}",
    "alibaba": "LT~AI{a20}",
    "tencent": "AK~ID{a32}",
    "yandex": "AQ~VN{u36}",
    "shippo": "ship~po_live_{h40}",
    "razorpay secret": "RAZORPAY_KEY_SECRET={a24}",
    "paystack": "sk_~live_{h40}",
    "easypost": "EZ~AK{a54}",
    "plaid": "acc~ess-production-{g}",
    "terraform": "{a14}.atlas~v1.{u67}",
    "azure storage": "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=«{b86}==»;EndpointSuffix=core.windows.net",
    "azure bus": "Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«{b43}=»",
    "azure secret": "{a3}8Q~~{u34}",
    "azure sas": "https://acme.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig=«{b43}%3D»",
    "azure devops": "AZURE_DEVOPS_PAT_TOKEN={l52}",
    "azure cognitive": "Ocp-Apim-Subscription-Key: «{h32}»",
    "presigned": "https://b.s3.amazonaws.com/k?X-Amz-Expires=3600&X-Amz-Signature=«{h64}»",
    "jwt": "ey~JhbGciOiJIUzI1NiJ9.ey~J{u60}.{u43}",
    "jwt in cookie": "Cookie: theme=dark; session=«ey~J{u30}.ey~J{u60}.{u43}»",
    "cookie": "Cookie: lang=en; sessionid=«{l32}»; theme=dark",
    "set-cookie": "Set-Cookie: connect.sid=«s%3A{a32}.{a43}»; Path=/; HttpOnly",
    "basic": "Authorization: Basic «{basic}»",
    "basic curl": "curl -H 'Authorization: Basic «{basic}»' https://api.acme.dev",
    "bearer": "Authorization: Bearer «{a40}»",
    "bearer lower": "authorization: bearer «{u40}»",
    "token header": "Authorization: Token «{h40}»",
    "api key header": "x-api-key: «{a32}»",
    "curl user": "curl -u admin:«{p}» https://api.acme.dev",
    "url": "https://bob:«{p}»@acme.dev/x.git",
    "postgres": "postgresql://app:«{p}»@db.acme.dev:5432/app",
    "redis": "redis://:«{p}»@cache.acme.dev:6379/0",
    "mongodb": "mongodb+srv://app:«{p}»@c0.acme.mongodb.net/db",
    "amqp": "amqps://app:«{p}»@mq.acme.dev/v",
    "jdbc": "jdbc:mysql://db.acme.dev/app?user=app&password=«{p}»",
    "ado.net": "Server=db;Database=app;User Id=sa;Password=«{p}»;Encrypt=True",
    "odbc": "Driver={SQL};Server=db;Uid=sa;Pwd=«{p}»;",
    "env password": "DB_PASSWORD=«{p}»",
    "env pass": "export SMTP_PASS='«{p}»'",
    "pgpassword": "PGPASSWORD=«{p}» psql -h db",
    "env token": "ACME_TOKEN=«{a24}»",
    "env secret": "SESSION_SECRET=«{a32}»",
    "env key": "ALGOLIA_ADMIN_KEY=«{h32}»",
    "django": "SECRET_KEY = 'django-insecure-«{a40}»'",
    "rails": "SECRET_KEY_BASE=«{h64}»",
    "yaml password": "  password: «{p}»",
    "yaml token": "  token: «{a30}»",
    "toml": 'api_key = "«{a32}»"',
    "json password": '{"user": "bob", "password": "«{p}»"}',
    "json camel": '{"clientSecret": "«{a40}»", "clientId": "acme"}',
    "json token": '{"access_token":"«{a40}","token_type":"bearer"}',
    "json refresh": '{"refreshToken": "«{u48}»"}',
    "xml": "<password>«{p}»</password>",
    "ini": "passwd=«{p}»",
    "netrc": "machine acme.dev login bob password «{p}»",
    "flag": "deploy --password «{p}» --force",
    "flag equals": "deploy --api-token=«{a24}»",
    "sshpass": "sshpass -p «{p}» ssh bob@acme.dev",
    "mysql": "mysql -u root -p«{p}» app",
    "pgpass": "db.acme.dev:5432:app:bob:«{p}»",
    "sql": "CREATE USER bob IDENTIFIED BY '«{p}»'",
    "redis conf": "requirepass «{p}»",
    "htpasswd": "bob:«$2y$05${a53}»",
    "shadow": "root:«$6${a16}${a86}»:19000:0:99999:7:::",
    "wireguard": "PrivateKey = «{b42}A=»",
    "kubeconfig": "    client-key-data: «{b200}==»",
    "k8s secret": "data:\n  password: «{b22}==»",
    "query": "https://api.acme.dev/v1?user=1&access_token=«{a32}»&x=1",
    "query key": "GET /v1/items?api_key=«{a32} HTTP/1.1",
    "python": 'client = Client(api_key="«{a32}»")',
    "javascript": "const authToken = '«{a32}»';",
    "php": "$config['db_password'] = '«{p}»';",
    "php arrow": "'password' => '«{p}»',",
    "go": 'password := "«{p}»"',
    "java": 'props.setProperty("db.password", "«{p}»");',
    "c#": 'var clientSecret = "«{a40}»";',
    "ruby": ":password => '«{p}»'",
    "prose": "the password is «{p}» for now",
    "pem": "{pem}",
    "wallet": "mnemonic: '«abandon ability able about above absent absorb abstract absurd abuse access accident»'",
    "adyen": "ADYEN_API_KEY=«AQE{b80}»",
    "codecov": "CODECOV_TOKEN=«{g}»",
    "snyk": "SNYK_TOKEN=«{g}»",
    "confluent": "CONFLUENT_API_SECRET=«{b64}»",
    "elastic": "ELASTIC_PASSWORD=«{a20}»",
    "consul": "CONSUL_HTTP_TOKEN=«{g}»",
    "ansible": "ansible_become_pass: «{p}»",
    "gradle": "signing.password=«{p}»",
    "maven": "<passphrase>«{p}»</passphrase>",
    "private token": "PRIVATE-TOKEN: «{a20}»",
    "cut": "gh~p_{a12}…",
}

KINDS = tuple(SHAPES)


def secret(kind: str, rng: random.Random) -> tuple[str, str]:
    """A line with a secret of the kind, and what of it must be gone."""
    line = re.sub(r"\{([a-zA-Z])(\d*)\}|\{(basic|pem)\}", lambda match: _filled(match, rng), SHAPES[kind])
    line = line.replace("~~", "\0").replace("~", "").replace("\0", "~")
    framed = re.search("«(.*?)(?:»|$)", line, re.DOTALL)
    clean = line.replace("«", "").replace("»", "")
    if kind == "pem":
        return clean, clean.splitlines()[1]
    wanted = framed[1] if framed else clean.rpartition("=")[2] if re.match(r"[A-Z_]+=", clean) else clean
    return clean, wanted.split('"')[0].split(" HTTP")[0].rstrip("…")


def _filled(match: re.Match[str], rng: random.Random) -> str:
    letter, count, special = match.groups()
    if special == "basic":
        return base64.b64encode(f"bob:{_password(rng)}".encode()).decode()
    if special == "pem":
        lines = "\n".join("".join(rng.choices(_ALPHABETS["b"], k=64)) for _ in range(4))
        return f"-----BEGIN RSA PRIVATE {'KEY'}-----\n{lines}\n-----END RSA PRIVATE {'KEY'}-----"
    if letter == "g":
        return "-".join("".join(rng.choices(_ALPHABETS["h"], k=size)) for size in (8, 4, 4, 4, 12))
    if letter == "p":
        return _password(rng)
    return "".join(rng.choices(_ALPHABETS[letter], k=int(count)))


def _password(rng: random.Random) -> str:
    word = rng.choice(("hunter2", "Tr0ub4dor", "s3cr3tpw", "Winter2025", "pa55phrase", "zX9qLm2vT7"))
    return word + "".join(rng.choices("!#*+x7Q_.-", k=rng.randint(1, 4))) + rng.choice(_LETTERS)


WRAPPERS: dict[str, Callable[[str], str]] = {
    "alone": lambda line: line,
    "in text": lambda line: f"so I ran it:\n{line}\nand it worked",
    "in JSON": lambda line: json.dumps({"type": "tool_result", "content": f"ok\n{line}\ndone"}),
    "in JSON in JSON": lambda line: json.dumps({"line": json.dumps({"out": f"a\n{line}\n"})}),
    "three deep": lambda line: json.dumps([json.dumps({"x": json.dumps({"out": line})})]),
}

HARMLESS = tuple(
    line
    for line in r"""
commit {h40}
{h7} Fix the parser
index {h7}..{h7} 100644
Merge {h40} into {h40}
git checkout {h40} -- src/main.py
session {g} started
"sessionId": "{g}", "uuid": "{g}"
"parentUuid":"{g}","isSidechain":false
sha256:{h64}
"integrity": "sha512-{b86}=="
resolved "https://registry.npmjs.org/foo/-/foo-1.2.3.tgz#{h40}"
--hash=sha256:{h64}
<img src="data:image/png;base64,iVBORw0KGgo{b200}">
background: url(data:font/woff2;base64,d09GMgABAAAAA{b120})
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ{b200} bob@laptop
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} bob@laptop
acme.dev ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBB{b80}=
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
-----BEGIN PGP PUBLIC KEY BLOCK-----
MIIDdzCCAl+gAwIBAgIE{b44}
ETag: "{h32}"
X-Request-Id: {g}
traceparent: 00-{h32}-{h16}-01
docker pull acme/app@sha256:{h64}
image: registry.acme.dev/app:{h40}
arn:aws:iam::{d12}:role/deploy-role
s3://bucket/path/{g}/part-00000.parquet
/usr/lib/python3.11/site-packages/foo/bar_baz.py:{d3}
2026-11-16T14:45:32.123456Z INFO worker-{d2} started
File "/app/src/holdfast/base/redact.py", line {d3}, in redact
def test_a_very_long_name_of_a_test_that_checks_tokens_{d2}():
task-abcdefghijklmnopqrstuvwxyz
risk-management-of-everything-there-is
.sk-loading-indicator-container-wide {{ color: red }}
class="sk-cube-grid sk-three-bounce-animation-container"
password = os.environ.get('X')
password = os.environ["DB_PASSWORD"]
password=settings.DATABASE_PASSWORD2
password: str = Field(min_length=8)
password: ${DB_PASSWORD}
password: $DB_PASSWORD1
password: "{{ vault_db_password }}"
password: <your-password-1>
password: "********"
password=********
password: xxxxxxxx1
PASSWORD=changeme
PASSWORD=your_password_123
the password is wrong
the password is at least 8 characters
a password of 12 characters
password must be 8-64 characters
Enter your password:
"password": "Enter your password"
"password": "string"
"password": null
password_file=/run/secrets/db_password_1
--password-stdin
password_hash VARCHAR(255) NOT NULL
password VARCHAR(128),
passwordField.text2
passed=12 failed=0
pass: 12, fail: 3
12 passed, 3 skipped in 4.21s
bypass: route2-main
PWD=/home/bob/project1
OLDPWD=/home/bob/src2
def get_access_token(self) -> str:
api_key: str = None
api_key: Optional[str] = None
api_key=api_key
api_key=self._api_key2
api_key = get_api_key_v2()
api_key = config["api_key1"]
apiKey: process.env.API_KEY_2
api_key_env: OPENAI_API_KEY2
API_KEY=${API_KEY}
API_KEY=<your api key 1>
API_KEY=your-api-key-here-123
"apiKey": "YOUR_API_KEY_1"
export OPENAI_API_KEY=sk-...
export OPENAI_API_KEY="sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}
aws_access_key_id = AKIAIOSFODNN7EXAMPLE
aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
Authorization: Bearer $TOKEN
Authorization: Bearer <token>
Authorization: Bearer ${ACCESS_TOKEN_1}
Authorization: Bearer YOUR_ACCESS_TOKEN_1
-H "Authorization: Bearer {token}"
authorization = self.headers.get("authorization2")
Basic usage of the tool2
basic authentication is described below
secret_name=my_secret_name
secretName: db-credentials-v2
secretKeyRef: {name: db-secret-1, key: password}
SECRET_NAME=prod/db/main2
secret_version=3
client_secret: <client-secret>
token_type: Bearer
token_count: 12345
"input_tokens":12345,"output_tokens":678,"cache_read_input_tokens":90123
max_tokens=4096
tokens: 128_000
max_tokens: 200k
token expires in 3600s
tokenizer: gpt2-medium-v2
token = next(tokens1)
token = lexer.next_token2
token: token2,
token=token1
token: uint256
token: Token = Token(kind=3)
tokenUrl: https://acme.dev/oauth2/token
"token_endpoint": "https://acme.dev/oauth2/token"
self.token = token_v2
--token-file /run/secrets/token1
auth_url: https://login.acme.dev/oauth2
auth_type=oauth2
auth: basic2
author: bob1
"author": "Jane Doe 3"
authority: login.acme.dev2
primary_key=user_id2
primary_key: {h32}
sort_key: created_at2
cache_key = f"user:{h12}:v2"
cache_key: {h40}
"key": "user-42"
"key": "{h16}"
key: value1
key=lambda item: item[1]
key_id={g}
public_key: {b43}=
publishable_key=pk_live_{a24}
idempotency_key: {g}
foreign_key(users.id2)
keyboard: us-intl2
keywords: python3, asyncio
for key, value in items2:
ssh_key_path=~/.ssh/id_ed25519
private_key_path: /etc/ssl/private/key1.pem
private_key_file = certs/server1.key
encryption_key_id: alias/prod-key-1
https://host/path:with@sign
https://acme.dev/a/b?page=2&sort=name
git@github.com:acme/app2.git
postgres://localhost:5432/app2
postgres://user:password@localhost/db
postgresql://postgres:postgres@localhost:5432/test
redis://localhost:6379/0
amqp://guest:guest@localhost:5672/
http://$USER:$PASS@proxy:3128
https://<user>:<password>@acme.dev
mailto:bob@acme.dev
bob@acme.dev:8080
npm install foo@1.2.3 bar@4.5.6
"cookie": "^0.5.0"
cookie = request.cookies2
Set-Cookie: theme=dark; Path=/; Max-Age=3600
Cookie: lang=en
cookies: accept-all2
cus_{a14}
price_{a24}
pi_{a24}
evt_{a24}
AC{h32}
C{A10} joined the channel
sk-learn-contrib-extensions-and-more
pip install scikit-learn==1.5.2
version: 1.2.3-beta.4+{h7}
0x{h40}
0x{h64}
{h64}
{h40}
{h32}
{g}
01{A24}
127.0.0.1:5432:app
ports: ["5432:5432"]
docker run -p 8080:80 -u 1000:1000 app
docker run -u root:root2 app
useradd -u 1000 bob
chown -R www-data:www-data /var/www1
mysql -u root -p
mysql -h db1 -P 3306 app
tar -xzf app-1.2.3.tar.gz
curl -u "$USER:$PASS" https://acme.dev
curl -u user:pass https://acme.dev
const {{ token, secret }} = await load2();
import {{ getToken2 }} from "./auth2";
import secrets, tokenize, keyword
from passlib.hash import bcrypt2
secrets.token_hex(32)
if token == TOKEN_END2:
assert token != "abc1"
raise InvalidTokenError2("token 12 is bad")
KeyError: 'user_id2'
<input type="password" name="pw1" id="password2">
<label for="password">Password 2</label>
<key>CFBundleVersion2</key>
Sentence with a secret: never commit it.
The secret to speed is fewer allocations (2x).
keys: ["a1b2", "c3d4"]
mnemonic: 'MOV EAX 2'
signature: (a: int2, b: str2) -> bool
sig = inspect.signature(func2)
signature=sha256
&page=2&sig=none
translation_key: "settings.title2"
i18n.t("password.reset.title2")
"scripts.auth.token": "Token 2"
monkey: typescript2
turkey: 2026-11-16
keyframes2 { from: 0 }
v1.0-rc1-build-{d4}
MTU: 1500 bytes, queue length 1000.
NTP server: time1.acme.dev.local.example
ODBC driver version 17.10.6.1.2.3.4
hash: {h64}
checksum={h32}
fingerprint: SHA256:{b43}
nonce: {h24}
digest = hashlib.sha256(b"{a12}").hexdigest()
"requestId": "req_{a24}"
toolu_{a24}
msg_{a24}
call_{a24}
chatcmpl-{a29}
"id": "{a22}"
""".strip().splitlines()
)


def harmless(rng: random.Random) -> list[str]:
    return [
        re.sub(r"\{([hablAdgu])(\d*)\}()(?!\})", lambda match: _filled(match, rng), line) for line in HARMLESS
    ]
