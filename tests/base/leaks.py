# ruff: noqa: E501, RUF001 - a table, which reads worse when broken
"""A second corpus, independent of `secrets_corpus`: how secrets leak in configuration, commands, code and logs.

A row is a kind: the lines that hold it, with `@X` where the secret stands (all its places are the same one).
X says of what it is made, see `_MAKERS`; what stands between backticks is a token with its vendor's prefix,
cut in two by `~` so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Callable

_ALNUM = string.ascii_letters + string.digits
_LOWER = string.ascii_lowercase + string.digits
_WORDS = [
    *("autumn", "harbor", "copper", "violet", "meadow", "falcon", "granite", "willow", "ember", "canyon"),
    *("orchid", "glacier", "maple", "lantern", "raven", "juniper", "cobalt", "thistle", "marble", "sierra"),
]


def _of(alphabet: str, length: int) -> Callable[[random.Random], str]:
    return lambda rng: "".join(rng.choice(alphabet) for _ in range(length))


def _password(rng: random.Random) -> str:
    """As people make them up."""
    word, other = rng.sample(_WORDS, 2)
    forms = (
        f"{word.title()}{rng.randrange(10, 9999)}!",
        f"{word}{other.title()}{rng.randrange(10, 999)}",
        f"{word[:3]}0r{rng.choice('!#%&*')}{other}{rng.randrange(10)}",
        f"{word.title()}-{other}_{rng.randrange(100, 9999)}!",
        "".join(rng.choice(_ALNUM + "!#%*+?") for _ in range(14)) + "7a",
        "".join(rng.choice(_ALNUM) for _ in range(18)) + "3x",
    )
    return rng.choice(forms)


def _login(rng: random.Random) -> str:
    return base64.b64encode(f"{rng.choice(_WORDS)}:{_password(rng)}".encode()).decode()


def _base64(size: int) -> Callable[[random.Random], str]:
    return lambda rng: base64.b64encode(rng.randbytes(size)).decode()


def _url_base64(size: int) -> Callable[[random.Random], str]:
    return lambda rng: base64.urlsafe_b64encode(rng.randbytes(size)).decode().rstrip("=")


def _uuid(rng: random.Random) -> str:
    digits = _of("0123456789abcdef", 32)(rng)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


_MAKERS: dict[str, Callable[[random.Random], str]] = {
    "P": _password,  # a password
    "L": _login,  # base64 of user:password
    "H": _of("0123456789abcdef", 32),
    "I": _of("0123456789abcdef", 40),
    "J": _of("0123456789abcdef", 64),
    "T": _of(_ALNUM, 32),
    "S": _of(_ALNUM, 20),
    "V": _url_base64(32),
    "B": _base64(32),
    "K": _base64(64),
    "E": lambda rng: base64.b64encode(_password(rng).encode()).decode(),
    "U": _uuid,
}

LEAKS: dict[str, str] = {
    # Environment and settings, a form a line, `¦` between two.
    "env file": "DB_PASSWORD=@P¦SMTP_PASS=@P¦REDIS_PASSWORD=\"@P\"¦ADMIN_PASSWORD='@P'",
    "shell export": 'export API_TOKEN=@T¦export SECRET_KEY="@V"¦export SLACK_SIGNING_SECRET=@H',
    "declare -x": 'declare -x GH_TOKEN="@I"¦declare -x NPM_AUTH_TOKEN="@U"',
    "fish": "set -x OPENWEATHER_API_KEY @H¦set -gx MY_API_TOKEN @T",
    "csh": "setenv DEPLOY_TOKEN @T¦setenv DB_PASSWORD @P",
    "PowerShell": '$env:API_KEY = "@T"¦$env:DB_PASSWORD="@P"¦$password = "@P"',
    "cmd.exe": 'set DB_PASSWORD=@P¦setx API_TOKEN "@T"',
    "Dockerfile": "ENV DB_PASSWORD=@P¦ENV SECRET_TOKEN @T¦ARG NPM_TOKEN=@U",
    "docker run": "docker run -d -e POSTGRES_PASSWORD=@P postgres:16¦docker run --env MYSQL_ROOT_PASSWORD='@P' mysql",
    "docker inspect": '"Env": ["PATH=/usr/bin", "DB_PASSWORD=@P", "LANG=C"]',
    "compose": "      POSTGRES_PASSWORD: @P¦      - MINIO_ROOT_PASSWORD=@P",
    "kubernetes env": '- name: DB_PASSWORD\n  value: @P¦            - name: API_TOKEN\n              value: "@T"',
    "ECS task": '{"name": "DB_PASSWORD", "value": "@P"}¦{"name":"STRIPE_SECRET","value":"@T"}',
    "key and value": '{"key": "API_TOKEN", "value": "@T"}¦{ "Key": "ClientSecret", "Value": "@V" }',
    "kubernetes secret": "apiVersion: v1\nkind: Secret\ndata:\n  password: @E\n¦data:\n  api-key: @B\n",
    "kubernetes stringData": "stringData:\n  password: @P\n¦stringData:\n  auth-token: @T\n",
    "kubeconfig token": "users:\n- name: admin\n  user:\n    token: @T",
    "kubeconfig key": "    client-key-data: @K",
    "helm": "helm install db bitnami/postgresql --set auth.postgresPassword=@P¦helm upgrade x . --set global.secretKey=@T",
    "kubectl literal": "kubectl create secret generic db --from-literal=password=@P¦kubectl create secret generic x --from-literal=api-token=@T",
    "terraform": 'db_password = "@P"¦variable "admin_password" { default = "@P" }¦  master_password      = "@P"',
    "terraform token": 'credentials "app.terraform.io" {\n  token = "@T"\n}',
    "ansible": "ansible_password: @P¦ansible_become_pass: '@P'¦vault_db_password: @P",
    "spring": "spring.datasource.password=@P¦spring.mail.password=@P¦    password: @P",
    "gradle": "signing.password=@P¦systemProp.http.proxyPassword=@P¦RELEASE_STORE_PASSWORD=@P",
    "maven": "<server><id>nexus</id><username>ci</username><password>@P</password></server>",
    "xml element": "<apiKey>@T</apiKey>¦<ClientSecret>@V</ClientSecret>¦<secretKey>@B</secretKey>",
    "xml attribute": '<datasource user="app" password="@P" url="x"/>¦<property name="password" value="@P"/>',
    "web.config": '<add key="ApiKey" value="@T" />¦<add key="SmtpPassword" value="@P" />',
    "nuget.config": '<add key="ClearTextPassword" value="@P" />',
    "appsettings": '"ApiKey": "@T"¦"ClientSecret": "@V"¦"JwtSecret": "@K"',
    "ODBC": "Server=db;Database=app;Uid=app;Pwd=@S;¦Driver={ODBC};Server=x;UID=sa;PWD=@S;Encrypt=yes",
    "ADO": "Data Source=db;Initial Catalog=app;User ID=sa;Password=@S;¦Server=tcp:x.example.net;User Id=app;Password=@P;",
    "azure storage": "DefaultEndpointsProtocol=https;AccountName=files;AccountKey=@K;EndpointSuffix=core.windows.net",
    "service bus": "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=@B",
    "cosmos": "AccountEndpoint=https://x.documents.azure.com:443/;AccountKey=@K;",
    "iot hub": "HostName=x.azure-devices.net;DeviceId=d1;SharedAccessKey=@B",
    "JDBC": "jdbc:postgresql://db:5432/app?user=app&password=@S¦jdbc:mysql://db/app?user=root&password=@S&useSSL=false",
    "postgres url": "postgres://app:@S@db.internal:5432/app¦DATABASE_URL=postgresql+psycopg://app:@S@dbhost.corp/app",
    "mysql url": "mysql://root:@S@dbhost.corp:3306/app¦mysql2://app:@P@db/app",
    "mongo url": "mongodb+srv://app:@S@cluster0.abcde.mongodb.net/test¦MONGO_URI=mongodb://root:@S@m1:27017,m2:27017/?x=1",
    "redis url": "redis://:@S@cache:6379/0¦rediss://default:@S@x.upstash.io:6379",
    "amqp url": "amqp://guest2:@S@mq:5672//¦CELERY_BROKER_URL=amqps://app:@S@mq/vhost",
    "ftp url": "ftp://deploy:@S@files.internal/pub¦sftp://u:@P@host/x",
    "smtp url": "smtp://mailer:@S@mail.internal:587¦smtps://a%40b.c:@S@smtp.host",
    "proxy url": "http_proxy=http://me:@S@proxy.corp:3128¦HTTPS_PROXY=http://svc:@S@host.corp:8080",
    "git url": "git clone https://ci:@S@git.corp/x/y.git¦origin\thttps://oauth2:@S@git.corp/x.git (push)¦git+https://@T@git.corp/x.git",
    "pip url": "index-url = https://ci:@S@pypi.corp/simple¦--extra-index-url https://__token__:@S@pypi.corp/simple",
    "cloudinary": "CLOUDINARY_URL=cloudinary://123456789012345:@S@mycloud",
    "ldap": "ldapsearch -x -D cn=admin,dc=x -w @P -b dc=x¦bindpw @P¦bind_password: @P",
    "netrc": "machine api.corp login ci password @P¦machine git.corp\n  login me\n  password @P",
    "npmrc": "//npm.corp/:_authToken=@T¦//npm.corp/:_password=@E¦_auth=@L",
    "pypirc": "[testpypi]\nusername = me\npassword = @P",
    "my.cnf": '[client]\nuser=root\npassword=@P¦[mysqldump]\npassword = "@P"',
    "pgpass": "db.corp:5432:app:deploy:@P¦localhost:5432:*:postgres:@P",
    "s3cfg": "secret_key = @B¦access_token = @T",
    "rclone": "[box]\ntype = sftp\npass = @V",
    "aws file": "[default]\naws_access_key_id = x\naws_secret_access_key = @B¦aws configure set aws_secret_access_key @B",
    "boto": 'aws_secret_access_key="@B"¦session = Session(secret_access_key="@B")',
    "gcloud": '"client_secret": "@V", "refresh_token": "@V"',
    "docker auth": '{"auths": {"ghcr.io": {"auth": "@L"}}}¦"identitytoken": "@V"',
    "composer auth": '{"http-basic": {"repo.corp": {"username": "ci", "password": "@P"}}}¦{"github-oauth": {"github.com": "`gh~o_@36`"}}',
    "cargo": '[registry]\ntoken = "@T"¦CARGO_REGISTRY_TOKEN=@T',
    "bundler": "BUNDLE_GEMS__CORP=ci:@S¦BUNDLE_ENTERPRISE__CONTRIBSYS__COM=@8:@8",
    "hosts.yml": "github.com:\n    oauth_token: @I\n    user: me",
    "wifi": 'psk="@P"¦wpa_passphrase=@P¦  passphrase: "@P"',
    "wireguard": "PrivateKey = @B¦PresharedKey = @B",
    "redis.conf": "requirepass @P¦masterauth @P",
    "django": "SECRET_KEY = 'django-insecure-@V'¦SECRET_KEY = \"@T\"",
    "rails": "secret_key_base: @J@J¦RAILS_MASTER_KEY=@H",
    "laravel": "APP_KEY=base64:@B",
    "wordpress": "define('DB_PASSWORD', '@P');¦define( 'AUTH_KEY', '@K' );¦define('NONCE_SALT', '@K');",
    "nextauth": 'NEXTAUTH_SECRET=@B¦AUTH_SECRET="@B"¦SESSION_SECRET=@V',
    "encryption": "ENCRYPTION_KEY=@J¦HMAC_KEY=@B¦JWT_SIGNING_KEY=@T",
    # Commands.
    "curl basic": "curl -u admin:@P https://api.corp/x¦curl --user 'svc:@P' https://x¦curl -sS -u ci:@S https://x",
    "curl header": 'curl -H "Authorization: Bearer @T" https://x¦curl -H "X-Api-Key: @T" https://x¦curl -H \'PRIVATE-TOKEN: @S\' https://x',
    "curl data": "curl -d 'username=a&password=@S' https://x¦curl -d '{\"password\":\"@P\"}' https://x¦curl -F client_secret=@V https://x",
    "wget": "wget --user=a --password=@P https://x¦wget --header='Authorization: token @I' https://x",
    "http client": "http POST api.corp/login password=@P¦http -a admin:@P api.corp/x",
    "psql": "PGPASSWORD=@P psql -h db -U app¦PGPASSWORD='@P' pg_dump app",
    "mysql": "mysql -u root -p@S app¦mysqldump --password=@P app¦MYSQL_PWD=@P mysql app",
    "mongo": "mongosh --username app --password @P¦mongodump -u app -p @P --db x",
    "redis-cli": "redis-cli -h cache -a @P ping¦REDISCLI_AUTH=@P redis-cli ping",
    "sshpass": "sshpass -p @P ssh root@host.corp¦sshpass -p '@P' scp a b:¦SSHPASS=@P sshpass -e ssh x",
    "sudo": "echo '@P' | sudo -S apt update¦echo @P | sudo -S ls",
    "docker login": "docker login -u ci -p @P registry.corp¦echo @T | docker login -u ci --password-stdin registry.corp",
    "openssl": "openssl rsa -in k.pem -passin pass:@P¦openssl pkcs12 -export -out x.p12 -passout pass:@P",
    "htpasswd": "htpasswd -b .htpasswd admin @P¦htpasswd -nb admin @P",
    "archive": "7z a -p@P x.7z d¦zip -P @P x.zip d¦unzip -P @P x.zip",
    "gpg": "gpg --batch --passphrase @P -c x¦gpg --passphrase='@P' x",
    "smb": "smbclient //nas/x -U 'me%@P'¦mount -t cifs //nas/x /m -o username=me,password=@S",
    "vault": "vault kv put secret/x password=@P¦vault login @T¦VAULT_TOKEN=hvs.@V",
    "heroku": "heroku config:set API_SECRET=@T -a x¦fly secrets set DB_PASSWORD=@P",
    "gh secret": 'gh secret set DEPLOY_TOKEN --body "@T"¦gh auth login --with-token <<< @I',
    "cloud cli": "az login --service-principal -u x -p @V --tenant y¦doctl auth init -t @J¦az ad sp create --password @P",
    "mc alias": "mc alias set minio http://minio:9000 admin @P",
    "create user": "CREATE USER app WITH PASSWORD '@P';¦ALTER ROLE app PASSWORD '@P';¦CREATE USER 'a'@'%' IDENTIFIED BY '@P';",
    "keytool": "keytool -storepass @P -list¦jarsigner -keypass @P x.jar¦keytool -genkey -storepass '@P'",
    "useradd": "echo 'root:@P' | chpasswd¦echo \"deploy:@P\" | sudo chpasswd",
    "twine": "twine upload -u me -p @P dist/*¦TWINE_PASSWORD=@P twine upload dist/*",
    "npm token": "npm config set //npm.corp/:_authToken @T¦npm config set //npm.corp/:_authToken=@U",
    "option": "tool --api-key @T¦tool --token=@T¦tool --client-secret '@V'¦tool --auth-token=@T --verbose",
    # HTTP.
    "bearer": "Authorization: Bearer @V¦authorization: bearer @T",
    "basic": "Authorization: Basic @L¦Proxy-Authorization: Basic @L¦AUTHORIZATION: basic @L",
    "other scheme": "Authorization: Token @I¦Authorization: ApiKey @V¦Authorization: SSWS 00@I¦Authorization: AWS4-HMAC-SHA256 Credential=x, Signature=@J",
    "key header": "X-API-Key: @T¦x-goog-api-key: @V¦Ocp-Apim-Subscription-Key: @H¦api-key: @H¦xi-api-key: @H",
    "token header": "X-Auth-Token: @T¦X-Vault-Token: @T¦PRIVATE-TOKEN: @S¦X-Shopify-Access-Token: @H¦X-CSRF-Token: @V",
    "amz header": "X-Amz-Security-Token: @K@K",
    "cookie": "Cookie: sessionid=@T¦Cookie: theme=dark; connect.sid=s%3A@V; lang=en¦Cookie: _gitlab_session=@H",
    "set-cookie": "Set-Cookie: JSESSIONID=@H; Path=/; HttpOnly¦set-cookie: auth_token=@V; Secure",
    "query": "https://api.corp/x?api_key=@H¦https://x/y?a=1&access_token=@V&b=2¦GET /x?token=@T HTTP/1.1¦wss://x/?auth=@T",
    "fragment": "https://app.corp/cb#access_token=@V&token_type=bearer",
    "presigned": "https://b.s3.amazonaws.com/k?X-Amz-Credential=x&X-Amz-Signature=@J¦https://x.blob.core.windows.net/c/b?sv=2022&sig=@V%3D",
    "form": "grant_type=password&username=a&password=@S¦client_id=x&client_secret=@V&grant_type=client_credentials",
    "oauth answer": '{"access_token":"@V","token_type":"bearer","expires_in":3600}¦{"refresh_token": "@V"}¦{"id_token":"@V"}',
    # Code.
    "python": 'API_KEY = "@T"¦client = Client(api_key="@T")¦os.environ["MY_TOKEN"] = "@T"¦password = "@P"',
    "python auth": 'requests.get(url, auth=("admin", "@P"))¦smtp.login("me@x.org", "@P")¦auth = HTTPBasicAuth("svc", "@P")',
    "python dict": "{'password': '@P'}¦dict(user='a', passwd='@P')¦config['secret_key'] = '@V'",
    "python bytes": 'SECRET = b"@T"¦app.config["SECRET_KEY"] = b"@V"¦app.secret_key = "@T"',
    "javascript": "const apiKey = '@T';¦const client = new Client({ token: \"@T\" });¦process.env.API_SECRET = `@V`",
    "typescript": 'private readonly apiToken: string = "@T";¦const password: string = "@P"',
    "java": 'private static final String API_KEY = "@T";¦ds.setPassword("@P");¦conn = DriverManager.getConnection(url, "app", "@P");',
    "go": 'apiKey := "@T"¦Password: "@P",¦const token = "@T"',
    "rust": 'let api_key = "@T";¦const SECRET: &str = "@V";¦let password = String::from("@P");',
    "c#": 'string password = "@P";¦var clientSecret = "@V";¦new NetworkCredential("app", "@P")',
    "ruby": 'password: "@P"¦:password => "@P"¦config.secret_key = "@T"¦{"api_token" => "@T"}',
    "php": "$password = '@P';¦'password' => '@P',¦$apiKey = \"@T\";",
    "c": '#define API_KEY "@T"¦const char *password = "@P";¦static char token[] = "@T";',
    "lua, perl": 'local token = "@T"¦my $password = "@P";¦our $api_key = "@T";',
    "swift, kotlin": 'let apiKey = "@T"¦val apiSecret = "@V"¦let password: String = "@P"',
    # Documents and logs.
    "json": '{"user": "a", "password": "@P"}¦{"secret":"@T","x":1}¦{"credentials": {"token": "@T"}}',
    "yaml": "password: @P¦api_key: '@T'¦token: \"@T\"¦auth_token: @T  # of production",
    "yaml block": "password: |\n  @P\n¦api_token: >-\n  @T\n",
    "toml": 'password = "@P"¦api-token = "@T"¦secret_key = \'@V\'',
    "ini": "password = @P¦secret=@T¦auth_key : @T",
    "table": "| password | @P |¦| API key | `@T` |¦| DB_PASSWORD | @P |",
    "markdown": "**Password:** `@P`¦- API key: `@T`¦Token: **@T**",
    "log": "2024-05-01 12:00:01 INFO login user=a password=@P ok¦DEBUG token=@T refreshed¦level=debug msg=x api_key=@T",
    "log json": '{"level":"debug","msg":"auth","token":"@T"}¦{"ts":1,"req":{"headers":{"authorization":"Bearer @V"}}}',
    "initial password": "Generated password: @P¦Temporary password: @P¦Your initial admin password is: @S",
    "chat": "the password is @S¦my api key is @T, keep it¦password for the db is: @P¦use token @T",
    "python repr": "Settings(user='a', password='@P')¦Config(api_key='@T', url='x')¦{'Authorization': 'Bearer @V'}",
    "struct dump": "Config{User:a Password:@P Port:1}¦{User:a Token:@T}",
    "har": '{"name": "Authorization", "value": "Bearer @V"}¦{"name":"Cookie","value":"sid=@T"}¦{"name": "X-Api-Key", "value": "@T"}',
    "headers list": "[('Authorization', 'Basic @L')]¦{'x-api-key': '@T'}¦headers = {\"X-Auth-Token\": \"@T\"}",
    "verbose curl": "> Authorization: Bearer @V¦> X-Api-Key: @T¦< Set-Cookie: sid=@T; path=/¦* Server auth using Basic with user 'a'\n> Authorization: Basic @L",
    "shadow": "root:$6$@8$@86:19000:0:99999:7:::¦a:$y$j9T$@22$@43:19000::::::",
    "htpasswd file": "admin:$apr1$@8$@22¦admin:$2y$05$@53",
    "ssh key": "-----BEGIN OPENSSH ~PRIVATE KEY-----\n@K\n@K\n-----END OPENSSH ~PRIVATE KEY-----",
    "rsa in json": '"private_key": "-----BEGIN ~PRIVATE KEY-----\\n@K\\n-----END ~PRIVATE KEY-----\\n"',
    "rsa in env": 'SIGNING="-----BEGIN RSA ~PRIVATE KEY-----\\n@K\\n@K\\n-----END RSA ~PRIVATE KEY-----"',
    "pgp key": "-----BEGIN PGP ~PRIVATE KEY BLOCK-----\n\n@K\n@K\n=abcd\n-----END PGP ~PRIVATE KEY BLOCK-----",
    "jwk": '{"kty":"RSA","n":"abc","e":"AQAB","d":"@V@V","p":"x"}¦{"kty":"oct","k":"@V"}',
    "otp": "otpauth://totp/x:a?secret=@b&issuer=x",
    "mnemonic": 'mnemonic: @w¦seed phrase: @w¦recovery_phrase="@w"',
    # Tokens with a form of their own that the first corpus does not have.
    "adafruit": "`ai~o_@28`",
    "apify": "`apify~_api_@36`",
    "cockroach": "`CC~DB1_@22_@40`",
    "canva": "`cn~vca@50`",
    "duffel": "`duffel~_live_@43`",
    "maxmind": "`@6_@29~_mmk`",
    "settlemint": "`sm~_aat_@16`",
    "shippo": "`shippo~_live_@I`",
    "langfuse": "`sk~-lf-@U`",
    "llamaindex": "`llx~-@48`",
    "mercury": "`secret-token:mercury~_production_rma_@40_yrucrem`",
    "midtrans": "`Mid~-server-@24`",
    "mongodb atlas": "`mdb~_sa_sk_@40`",
    "onesignal": "`os~_v2_app_@n100`",
    "openrouter": "`sk~-or-v1-@J`",
    "persona": "`persona~_production_@U`",
    "pinterest": "`pina~_@108`",
    "polar": "`polar~_oat_@43`",
    "posthog": "`ph~x_@43`¦`ph~s_@43`",
    "samsara": "`samsara~_api_@30`",
    "telnyx": "`KEY~018@N29_@22`",
    "thunderstore": "`ts~s_@36`",
    "valtown": "`vt~wn_@28`",
    "wakatime": "`waka~_sec_@80`¦`waka~_@U`",
    "workos": "`sk~_live_@40`",
    "xendit": "`xnd~_production_@47`",
    "zuplo": "`zpk~a_@32_@h8`",
    "checkout": "`sk~_sbox_@32`",
    "cfx": "`cfx~k_@20_@6`",
    "pangea": "`pt~s_@32`",
    "paddle": "`pdl~_live_apikey_@26_@22_@3`",
    "permit": "`permit~_key_@80`",
    "rootly": "`rootly~_@64`",
    "trigger.dev": "`tr~_prod_@24`¦`tr~_dev_@24`",
    "infisical": "`st~.@U.@H.@H`",
    "ngrok": "`2~@26_@21`",
    "swarm": "`SWM~TKN-1-@n50-@n25`",
    "bitwarden": "`0~.@U.@30:@B`",
    "kubeadm": "kubeadm join 10.0.0.1:6443 --token @k¦kubeadm join x:6443 --token @k --discovery-token-ca-cert-hash sha256:x",
    "ghost": "GHOST_ADMIN_API_KEY=@h24:@J¦adminApiKey: '@h24:@J'",
    "segment": "`sgp~_@64`",
    "authress": "`sc~_@30.@5.acc_@10.@40`¦`authress~_@30.@5.acc-@10.@40`",
    "deepgram, cohere": "DEEPGRAM_API_KEY=@I¦COHERE_API_KEY=@40¦MISTRAL_API_KEY=@T",
    "lob": "`live~_@h35`¦`test~_pub_@h31`",
    "teams webhook": "https://corp.webhook.office.com/webhookb2/@U@@U/IncomingWebhook/@H/@U",
    "names that end in pw": "ROOT_PW=@P¦LDAP_BIND_PW=@S¦olcRootPW: @P",
    "other languages": "passwort: @S¦KENNWORT=@S¦MOT_DE_PASSE=@S¦mdp: @S¦wachtwoord=@S",
    "percent": "password%3D@T%26x%3D1¦%22api_key%22%3A%22@T%22¦access_token%3D@T",
    "html entities": "&quot;password&quot;:&quot;@T&quot;¦token=&#39;@T&#39;",
    "json code points": "\\u0022password\\u0022:\\u0022@T\\u0022¦password\\u003d@T",
    "colors": "\x1b[32mpassword\x1b[0m: @T",
    "powershell secure string": 'ConvertTo-SecureString "@P" -AsPlainText -Force',
    "plist": "<key>ApiKey</key>\n<string>@T</string>¦<Password><Value>@S</Value></Password>",
    "value before its name": '{"value": "@T", "name": "DB_PASSWORD"}¦<input value="@T" name="password">',
    "else": "process.env.JWT_SECRET || '@T'¦ENV['API_SECRET'] || '@T'¦password <- \"@S\"",
    "browser driver": "await page.getByLabel('Password').fill('@S')¦find(\"password\").send_keys(\"@S\")",
    "wrapped": 'ssh.Password("@T")¦var secret = []byte("@T")¦var secret = @"@T";',
    "more programs": "skopeo login -u b -p @S r.corp¦mosquitto_pub -u b -P @S -t x¦sqlcmd -S h -U sa -P @S¦mariadb -uroot -p@S db",
    "proxy": "curl -x http://p:8080 --proxy-user bob:@S x¦curl -U bob:@S x",
    "token as the user": "curl -u @T: https://api.corp/v1",
    "registries": "poetry config http-basic.corp bob @S¦bundle config set gems.corp bob:@S¦htpasswd -nbB bob @S¦sqlplus scott/@S@orcl",
    "cisco": "enable password 7 08@h8@h8",
    "smtp login": "AUTH PLAIN @E7",
    "zapier, ifttt": "https://maker.ifttt.com/trigger/x/with/key/@22¦https://hooks.zapier.com/hooks/catch/1234567/@7/",
    "discord webhook": "https://discord.com/api/webhooks/1112223334445556667/@68",
    "slack config": "`xoxe~.xoxp-1-@160`¦`xoxe~-1-@147`",
    "google refresh": "`1~//0@60`",
    "azure client": "`@3¬8Q^~@a34`",
    "jwt": "`ey~Jhb@17.ey~J@40.@43`",
    "digest": 'Authorization: Digest username="a", realm="b", nonce="c", uri="/", response="@H", qop=auth',
    "vercel blob": "`vercel~_blob_rw_@16_@30`",
    "honeycomb": "`hca~ik_01@n56`¦`hcb~ik_01@n56`",
    "ubidots": "`BB~FF-@30`",
    "firebase": "AAAAb2c3d4e:`APA~91b@134`¦Authorization: key=AAAAb2c3d4e:`APA~91b@134`",
    "zoho": "`10~00.@H.@H`",
    "jwt in base64": "`ZXlK~aGJHY2lPaUpJVXpJMU5pSjku@80`¦`ZXlK~MGVYQWlPaUpLVjFR@80==`",
    "key in base64": "tls.key: `LS0tLS1CRU~dJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ@160`¦`LS0tLS1CRU~dJTiBPUEVOU1NIIFBSSVZBVEUg@160==`",
    "OpenVPN": "-----BEGIN OpenVPN ~Static key V1-----\n@H\n@H\n-----END OpenVPN ~Static key V1-----",
    "PuTTY, one line": "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-~Lines: 1\n@48\nPrivate-MAC: x",
    "LDIF": "userPassword: {SSHA}@B¦userPassword: {SSHA512}@K",
    "CloudFront": "https://d1.cloudfront.net/x?Policy=a&Signature=@20~~@20^@T&Key-Pair-Id=b",
    "curl cookie": "curl -b 'session=@T' https://a.example¦curl -s -b sid=@T https://a.example",
    "programs with a password": "openssl enc -aes-256-cbc -k @S7 -in x¦snmpwalk -v3 -u a -A @S1 -X @S2 h¦ipmitool -H h -U a -P @S7 status¦ssh-keygen -t rsa -N '@S7' -f k¦helm registry login -u a -p @S7 r.example¦xfreerdp /u:a /p:@S7 /v:h¦rabbitmqctl add_user a @S7",
    "SQL in double quotes": "CREATE USER x IDENTIFIED BY \"@S7\";¦ALTER USER 'x'@^'%' IDENTIFIED BY \"@P\"",
    "vault login": "VAULT_SECRET_ID=@U¦approle_secret_id: @U",
    "short bearer": "Authorization: Bearer @a13x7¦> authorization: Bearer @a12-q4",
    "few letters": "JWT_SECRET: `aQk~PRUwDyNANduH`¦deploy --snyk-token `tdB~eDKRSRituGfG`¦password: |\n  `CkJ~xgHfoKUiL`\n¦PGPASSWORD=`GeK~uWqRtZbNmX` psql",
    # A third table, of forms that the first two do not have.
    "JFrog header": "X-JFrog-Art-Api: @T¦curl -H 'X-JFrog-Art-Api:@T' https://a.example",
    "Honeycomb header": "X-Honeycomb-Team: @H¦x-honeycomb-team=@S2",
    "vendor headers, no word": "X-Ghost-Admin: @T¦X-Session: @T¦x-access: @V",
    "oracle": "jdbc:oracle:thin:scott/@S2@//db:1521/x¦jdbc:oracle:thin:app/@P@db.corp:1521:orcl¦imp app/@S@orcl file=x.dmp¦expdp system/@S@orcl",
    "pgpass other ports": "db.corp:6432:app:deploy:@P¦10.0.0.5:5433:*:app:@P",
    "insert": "INSERT INTO users (name, password) VALUES ('bob', '@S2');¦insert into users(email,password,created) values ('a@¬b.c','@P',now())¦UPDATE config SET value='@T' WHERE name='smtp_password';",
    "sql users": "CREATE DATABASE LINK l CONNECT TO a IDENTIFIED BY @S2 USING 'x'",
    "snowflake": "snowsql -a acc -u me -p @P",
    "jwt.sign": "jwt.sign(payload, '@S2', { expiresIn: '1h' })¦jwt.verify(token, '@T')¦jwt.encode({'a': 1}, '@S2', algorithm='HS256')¦jwt.decode(t, \"@T\", algorithms=[\"HS256\"])",
    "hmac": "crypto.createHmac('sha256', '@T')¦createHmac(\"sha1\", \"@S2\").update(x)¦hmac.new(b'@T', msg, hashlib.sha256)¦hash_hmac('sha256', $data, '@T')¦OpenSSL::HMAC.hexdigest('SHA256', '@T', data)¦HmacUtils.hmacSha256Hex(\"@T\", x)",
    "credentials of clients": 'new AzureKeyCredential("@T")¦AzureKeyCredential(\'@H\')¦new StaticTokenCredential("@T")¦new SymmetricSecurityKey(Encoding.UTF8.GetBytes("@T"))¦new SecretKeySpec("@S".getBytes(), "AES")',
    "ciphers": "createCipheriv('aes-256-cbc', '@T', iv)¦AES.new('@S1', AES.MODE_CBC)¦CryptoJS.AES.encrypt(text, '@T')¦openssl_encrypt($d, 'aes-256-cbc', '@T')",
    "clients by position": "new Stripe('@T')¦OpenAI('@T')¦client.login('@T')¦bot.run('@T')¦TelegramBot('1234567:@T')¦twilio('AC12', '@H')¦Twilio(sid, '@H')¦algoliasearch('APPID12345', '@H')¦Github('@I')¦Slack('@T')¦cookieParser('@T')¦cookieSession({ keys: ['@T'] })",
    "comparisons": "hmac.compare_digest(token, '@T')",
    "defaults": "parser.add_argument('--token', default='@T')¦@click.option('--api-key', default='@T')¦api_key = api_key or '@T'",
    "net use": "net use Z: \\\\srv\\share @S2 /user:corp\\bob¦net use \\\\srv\\c$ /user:admin @S2¦winrs -r:h -u:a -p:@S2 dir",
    "impacket": "secretsdump.py corp/bob:@S2@¬10.0.0.5¦psexec.py 'corp.local/admin:@P@¬10.0.0.5'¦wmiexec.py corp/a:@S2@h 'dir'¦impacket-smbexec corp/a:@S2@h¦smbclient.py corp/a:@S2@h¦hydra -l a -p @S2 ssh://h¦bloodhound-python -u a -p @S2 -d c¦psexec.py -hashes :@H corp/a@¬h¦crackmapexec smb h -u a -H @H",
    "unix tools": "sudo -S <<< @S2 ls¦sudo -S <<< '@P' apt update¦sudo -S <<<\"@P\" id¦openssl enc -aes-256-cbc -K @J -iv 0 -in a¦openssl dgst -sha256 -hmac @S2 f¦printf '@P' | sudo -S ls¦printf '%s\\n' '@S2' | passwd --stdin bob¦passwd bob <<< @S2¦chpasswd <<< 'bob:@P'¦usermod -p @S2 bob¦su -c x <<< @S2¦cryptsetup open /dev/x y <<< @S2¦restic -r x backup <<< @S2¦gpg --batch --yes --passphrase-fd 0 <<< '@P'¦swaks -ap @S2 -au a¦vncpasswd -f <<< @S2¦snmpget -v2c -c @S2 h oid¦snmpwalk -v 2c -c @S2 h¦kinit a <<< @S2¦caddy hash-password --plaintext @S2¦rar a -hp@S2 a b",
    "cloud clis": "az sql server create -u a -p @S2¦wrangler secret put API_KEY <<< @T¦sonar-scanner -Dsonar.login=@I¦codecov -t @U¦dotnet user-secrets set Api:Key @T¦cargo login @T¦composer config github-oauth.github.com @I¦wandb login @I¦replicate auth login --token-stdin <<< @T",
    "yaml next line": 'password:\n  @S2¦  api_token:\n    "@T"\n¦api_key: !!str\n  @T¦client_secret: !vault\n  @T',
    "json pretty": '"password":\n  "@S2"¦{\n  "token":\n    "@T"\n}',
    "json array": '"passwords": ["@S2", "@P"]¦"api_keys": [\n  "@T",\n  "@T"\n]',
    "code next line": "api_key = (\n    \"@T\"\n)¦const token =\n  '@T';¦password = \\\n    '@S2'¦String apiKey =\n        \"@T\";¦'secret' =>\n    '@T',",
    "labels, next line": "Password:\n@S2¦API Key\n@T¦## Token\n\n`@T`¦Password\n--------\n@S2¦Secret access key\n@B",
    "html": '<td>Password</td><td>@S2</td>¦<dt>API key</dt>\n<dd>@T</dd>¦<b>Token:</b> <code>@T</code>¦<label>Password</label><input value="@S2">',
    "xml": '<setting name="Password" serializeAs="String"><value>@S2</value></setting>¦<password><![CDATA[@S2]]></password>¦<password encrypted="false">@S2</password>¦<ns:token xsi:type="x">@T</ns:token>',
    "snmp": "snmp-server community @S2 RO¦rocommunity @S2 default¦rwcommunity @S2¦community: @S2¦set snmp community @S2 authorization read-only",
    "radius": "radius-server host 10.0.0.1 key @S2",
    "cisco, more": "username bob password 0 @S2¦crypto isakmp key @S2 address 1.2.3.4¦ppp chap password 0 @S2¦key-string @S2",
    "dns, tsig": "nsupdate -y hmac-sha256:x:@B¦dig -y hmac-sha256:x:@B axfr",
    "irc, chat": "PASS oauth:@30",
    "names with PAT": 'GITHUB_PAT=@T¦AZURE_DEVOPS_EXT_PAT=@n52¦GH_PAT: @I¦ADO_PAT="@n52"¦MY_PAT=\'@T\'¦export CR_PAT=@I¦gitlabPat = "@S"',
    "names": "my_passwrd=@S2¦PASSWRD=@S2¦pswd=@S2¦PSWD: @S2¦psw=@S2¦pword: @S2¦otp_seed=@b¦TOTP_SEED=@b¦mfa_seed=@b¦PEPPER=@T¦HASH_SALT=@T¦PHPSESSID=@n26¦JSESSIONID=@H¦ASP.NET_SessionId=@n24¦bearer: @V¦BEARER=@T¦PRIVKEY=@J¦authtok: @T¦adminpw=@S2¦ADMINPW: @S2",
    "escapes": '"p\\u0061ssword": "@S2"¦"\\u0070assword":"@S2"¦"api\\u005fkey": "@T"¦pass%77ord=@S2¦p&#97;ssword=@S2',
    "prose": "Password (temporary): @S2¦Password [admin]: @S2¦Password for user bob: @S2¦API key (prod): @T¦API Key #1: @T¦token(s): @T¦token [prod]: @T",
    "logs": 'Invalid API key provided: @T¦Incorrect API key provided: @T.¦token: Some("@T")¦password: Some("@S2"),',
    "typed": 'std::string password{"@S2"};¦char password[32] = "@S2";¦let token: &\'static str = "@T";¦Dim password As String = "@S2"¦password :: String = "@S2"¦#define PASS "@S2"¦api_key: Some("@T".into()),¦env("API_TOKEN", default="@T")¦config(\'api_token\', default=\'@T\')',
    "kv stores": "aws ssm put-parameter --name /app/db_password --value @S2 --type SecureString¦az keyvault secret set --vault-name v --name n --value @S2¦gcloud secrets versions add x --data-file=- <<< @S2¦echo -n @S2 | gcloud secrets create x --data-file=-¦echo '@S2' | docker secret create db -¦pass insert -m x <<< @S2¦security add-generic-password -a a -s s -w @S2¦secret-tool store --label x <<< @S2",
    "URLs": "ws://h/?token=@T",
    "misc files": "<Pass encoding=\"base64\">@E</Pass>¦'hash_salt' = '@V'¦$settings['hash_salt'] = '@V';",
    # A fourth, of what has no name beside it.
    "calls": 'pymysql.connect("db.corp", "root", "@P", "shop")¦new PDO($dsn, \'root\', \'@P\', $options)¦mysqli_connect("localhost", "root", "@P", "x");¦oci_connect(\'scott\', \'@P\', \'db/XE\')¦DBI->connect("dbi:Pg:dbname=x", "app", "@P")¦ssh.connect("10.0.0.9", 22, "deploy", "@P")¦new Sequelize(\'shop\', \'root\', \'@P\', { dialect: \'mysql\' })¦psycopg2.connect(\n    "host",\n    "app",\n    "@P",\n)',
    "logins": 'l.simple_bind_s("cn=admin,dc=x,dc=org", "@P")¦ldap_bind($ds, "cn=admin,dc=x", "@P");¦smtp.PlainAuth("", "me@¬corp.org", "@P", "smtp.corp.net")¦ftp_login($conn, "deploy", "@P");¦client.username_pw_set("dev1", "@P")¦imap_open("{mail:993}INBOX", "bob", "@P")¦req.basic_auth("svc", Some("@P"))¦AuthTokens.basic("neo4j", "@P")¦redis.auth("@P")¦UsmUserData("usr", "@P", "@S7")¦WiFi.begin("HomeNet", "@P");¦new PasswordAuthentication("bob", "@P".toCharArray())',
    "CSV": 'user,password,email\nbob,@P,bob@¬x.org\nann,@P,a@¬x.org¦name;login;passwort;rolle\nBob;bob;@P;admin¦username\tpassword\nbob\t@P\n¦"name","url","username","password"\n"x","https://x.org","bob","@P"¦id,email,api_key,created\n1,a@¬b.c,@T,2024-01-01¦login_uri,login_username,login_password,login_totp\nhttps://a,bob,@P,¦User name,Access key ID,Secret access key\nbob,AKx,@B',
    "tables": "| user | password |\n|---|---|\n| bob | @P |¦| Service | User | Password |\n| --- | --- | --- |\n| db | app | `@P` |\n| mq | rabbit | @P |¦ id | username | password  \n----+----------+-----------\n  1 | bob      | @P¦x-1  | +----+------+\nx-1  | | id | password     |\nx-1  | +----+------+\nx-1  | |  1 | @P |¦USER      PASSWORD        ROLE\nbob       @P   admin¦       user      password\n0  reporting  @P¦┌────┬────┐\n│ user │ password │\n├────┼────┤\n│ bob │ @P │¦> select name, password from users;\nbob|@P",
    "printed": '$ pass show a/b\n@P\nuser: x¦x-1  | $ kubectl get secret a -o jsonpath={.data.password} | base64 -d\nx-1  | @P¦$ gcloud secrets versions access latest --secret=x\n@T¦$ cat auth.txt\nbob\n@P¦  $ pwgen -s 20 1\n  @S7¦$ az keyvault secret show -n x --query value -o tsv\n"@T"¦$ php artisan key:generate --show\nbase64:@B¦$ wg genkey | tee privatekey\n@B',
    "passphrases of words": "Recovery phrase (12 words): @w",
    "more languages": "Parola: @P¦Parola este @S7¦Heslo: @P¦Salasana: @P¦Adgangskode: @P¦A senha é @S7¦Das Kennwort lautet @S7¦le mot de passe est @S7",
    "dialogs": 'USER bob\n+OK\nPASS @S7¦a1 LOGIN bob "@P"¦/msg NickServ IDENTIFY @P¦127.0.0.1:6379> AUTH @P¦user bob on +@¬all allkeys >@S7¦ACL SETUSER bob on >@S7 ~*¦expect "assword:"\nsend "@S7\\r"¦CONNECT bob/@S7@¬ORCL¦334 UGFzc3dvcmQ6\n@E7',
    "more commands": "schtasks /create /ru bob /rp @P¦reg add x /v DefaultPassword /t REG_SZ /d \"@P\" /f¦openssl passwd -6 '@P'¦wpa_passphrase Home '@P'¦printf '@P' | docker secret create x -¦rclone config create nas sftp user bob pass @S7¦certutil -f -p @P -importpfx a.pfx¦curl --proxy-user bob:'@P' x¦curl -u bob:\\\n@S7 x¦vault operator unseal @B¦netsh wlan show profile x key=clear\n    Key Content            : @P¦PRAGMA key = '@P';¦[mx.corp]:587 bob@¬x.org:@S7¦cloudflared service install `eyJ~hIjoi@120`",
    "more code": 'btoa(\'bob:@P\')¦base64.b64encode(b"bob:@P")¦curl_setopt($c, CURLOPT_USERPWD, "bob:@P");¦new Client("sa", "@S7a")¦redis.Redis("h", 6379, 0, "@S7a")¦pyotp.TOTP("@b")¦KEY = bytes.fromhex("@J")¦UPDATE users SET password = crypt(\'@P\', gen_salt(\'bf\'))¦api_key: Optional[str] = "@T"¦os.environ.get(\'API_KEY\') or \'@T\'¦&lt;password&gt;@S7&lt;/password&gt;¦key: "@B"¦sip:bob:@S7@¬mq.corp:5060',
    "hashes": 'pbkdf2_sha256$600000$@22$@B¦SCRAM-SHA-256$4096:@22==$@B:@B¦bob:1001:aad3b435b51404eeaad3b435b51404ee:@H:::¦"bob" "md5@H"¦grub.pbkdf2.sha512.10000.@J.@J',
    "near a name": "Invalid user Harbor@d! from 10.0.0.1 (typed the password as user)¦assert 'Copper@d!' == 'x'  # settings.DB_PASSWORD¦adb shell input text 'Violet#@a9Zb'  # password field",
    "net user": 'net user bob @P /add¦NET USER svc "@P" /ADD¦net user bob @P',
    "signs that nobody sees": 'pass\u200bword=@P¦p\u200ca\u200css\u2060word: @P¦password:\u00a0@P¦pass\\u200bword=@S7¦api\u00ad_key = "@T"¦pass&shy;word: @S7¦password:&nbsp;@S7¦`gh\u200b~p_@36`',
}


def made(kind: str, rng: random.Random) -> list[tuple[str, list[str]]]:
    """Each line of the kind, with what must not be left of it."""
    return [_filled(form, rng) for form in LEAKS[kind].split("¦")]


_PLACE = re.compile(
    r"@(?P<base32>b)|@(?P<words>w)|@(?P<kube>k)|@(?P<digits>d)(?![a-z])|@(?P<kind>[hnN]?)(?P<size>[0-9]+)|@a(?P<any>[0-9]+)|@(?P<maker>[A-Z])"
)


def _filled(form: str, rng: random.Random) -> tuple[str, list[str]]:
    secrets: list[str] = []
    pieces: list[str] = []
    for number, piece in enumerate(form.split("`")):
        text, made_up = _replaced(piece, rng)
        pieces.append(text)
        secrets += [text] if number % 2 and "~" in piece else made_up
    is_token = any("~" in piece for piece in form.split("`")[1::2])
    return ("" if is_token else "`").join(pieces), secrets


def _replaced(piece: str, rng: random.Random) -> tuple[str, list[str]]:
    made_up: list[str] = []

    def value(match: re.Match[str]) -> str:
        made_up.append(_value(match, rng))
        return made_up[-1]

    text = _PLACE.sub(value, piece)
    return text.replace("~", "").replace("^", "~").replace("¬", ""), made_up


def _value(match: re.Match[str], rng: random.Random) -> str:
    if match["base32"]:
        return _of(string.ascii_uppercase + "234567", 32)(rng)
    if match["words"]:
        return " ".join(rng.sample(_WORDS, 12))
    if match["digits"]:
        return str(rng.randrange(1000, 10**7))
    if match["kube"]:
        return f"{_of(_LOWER, 6)(rng)}.{_of(_LOWER, 16)(rng)}"
    if match["any"]:
        return _of(_ALNUM + "_-", int(match["any"]))(rng)
    if match["size"]:
        alphabet = {"h": "0123456789abcdef", "n": _LOWER, "N": string.ascii_uppercase + string.digits}
        return _of(alphabet.get(match["kind"], _ALNUM), int(match["size"]))(rng)
    return _MAKERS[match["maker"]](rng)


HARMLESS = r"""
https://user@example.com/cookie?page=36&key=window
https://shop.example/cookies/?a=b1b2b3b4b5&c=d
Bearer authentication-v2 is required; Basic authentication is not
curl -b cookies.txt -c cookies.txt https://a.example
curl -b "$COOKIES" https://a.example
openssl x509 -in a.pem -noout -text
curl -k https://localhost:8443/health2
ssh-keygen -t ed25519 -N '' -f key
snmpwalk -v3 -u a -A $SNMP_PASSWORD host
ipmitool -H h -U a -P $IPMI_PASSWORD power status
xfreerdp /u:a /p:$PASSWORD /v:h
token = HTTPSConnection
password: BaseModelMixin
secret_id = "my-database-secret"
aws secretsmanager get-secret-value --secret-id prod/db/main2
{"userPassword": "{SSHA}"}
LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURYVENDQWtXZ0F3SUJBZ0lKQUxS
version 1000.20.3 of 1000.40.1-rc2
-----BEGIN OpenVPN tls-auth-----
SecretStr, SecretBytes, TokenStream, KeyValuePair
commit @I
@I refs/heads/main
index @h7..@h7 100644
Merge: @h7 @h7
sha256:@J
"integrity": "sha512-@K"
    --hash=sha256:@J \
resolved "https://registry.example/x/-/x-1.2.3.tgz#@I"
ETag: "@H"
id: @U
"requestId": "@U"
trace_id=@H span_id=@h16
x-request-id: @U
<img src="data:image/png;base64,iVBORw0KGgo@K@K@K">
url(data:font/woff2;base64,d09GMgABAAAAA@K@K)
!function(e,t){"use strict";var n=e.token,r=t[n]||t.key;return n.next(r)}(a,b);
const t=e=>e.key===n?r(e):o(e.token,e.password);
.input-password:focus { color: #1a2b3c; }
.token.punctuation { background: url(key.svg#a1b2c3d4); }
<input type="password" name="password" id="password-field-@d" />
<label for="password">Password:</label>
password: str = Field(..., min_length=12)
password: str = Field(default="", max_length=128)
api_key: SecretStr | None = None
token: str | None = Field(default=None, alias="X-Token")
token = next(tokens)
token = tokens[index + 1]
token = self._tokenizer.next_token()
token, rest = line.split(" ", 1)
token = request.headers.get("Authorization")
password = getpass.getpass("Password: ")
password = os.environ["DB_PASSWORD"]
password = input("Enter your password: ").strip()
secret = secrets.token_urlsafe(32)
secret = hmac.new(key, message, hashlib.sha256).hexdigest()
key = lambda item: (item.created_at, item.id)
for key, value in sorted(mapping.items()):
cache_key = f"user:{user.id}:v2"
cache_key = "users/list/page-2"
if password != confirm_password:
if token.type == TokenType.IDENTIFIER2:
assert token == "expected_token_value"
raise ValueError("password must have at least 12 characters")
def verify_password(plain: str, hashed: str) -> bool:
def get_token(self, *, refresh: bool = False) -> Token2:
class TokenV2Serializer(serializers.ModelSerializer):
from app.auth.tokens_v2 import AccessToken, decode_token
import { useToken, TokenProvider } from '../lib/token2';
const { data: token, error } = useQuery(['token', id], fetchToken);
const password = watch("password");
const apiKey = process.env.API_KEY;
const key = `item-${index}-v2`;
<Route key="settings-v2" path="/settings" />
<li key={item.id2} data-token={token.id}>
private final String password;
@Value("${spring.datasource.password}")
String token = jwtService.generateToken(user2);
password := os.Getenv("PGPASSWORD2")
let token = tokens.peek().unwrap();
pub fn api_key(&self) -> Option<&str> {
password_hash = bcrypt.hashpw(password, salt)
password: ${DB_PASSWORD}
password: {{ vault_db_password_v2 }}
password: !ENV DB_PASSWORD_2
POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:-postgres}
API_KEY=your-api-key-goes-here
API_KEY=<your key 123>
SECRET_KEY=changeme123
TOKEN=xxxxxxxxxxxxxxxxxxxx
PASSWORD=********
DB_PASSWORD_FILE=/run/secrets/db_password_v2
token_url: https://auth.example/oauth2/token
key_file: /etc/ssl/private/server-2024.key
ssl_key_path=/etc/nginx/keys/site1.pem
secretName: db-credentials-v2
secretKeyRef:
  name: api-token-2024
  key: tls.key
valueFrom: {secretKeyRef: {name: db-creds-2, key: password}}
serviceAccountName: token-reviewer-2
max_tokens: 4096
"max_tokens": 200000, "temperature": 0.7
"input_tokens": 10234, "output_tokens": 512
"cache_read_input_tokens":@d,"cache_creation_input_tokens":@d
tokens: 12.5k used of 200k
token count: 1234567
Total tokens 45,123 (cost $0.45)
tokenizer: cl100k_base
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
"tokenType": "bearer", "expiresIn": 3600
"token_type": "Bearer2"
"keyCode": 13, "key": "Enter"
{"key": "color", "value": "#1a2b3c4d5e"}
{"name": "timeout", "value": "30s"}
{"name": "image", "value": "registry.corp/app:2024-05-01-@h7"}
- name: GIT_COMMIT
  value: @I
- name: LOG_LEVEL\n  value: debug2
<add key="LogLevel" value="Debug2" />
<add key="BuildId" value="@U" />
<property name="version" value="1.2.3-rc4" />
primaryKey: "id_v2"
foreign key (user_id) references users2(id)
PRIMARY KEY (tenant_id, id2)
CREATE INDEX idx_tokens_v2 ON tokens (user_id, created_at);
SELECT token, password_hash FROM users WHERE id = 42;
ALTER TABLE users ADD COLUMN password_changed_at timestamp;
INSERT INTO keys (name) VALUES ('first-key-2');
public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI@43 me@host
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ@K@K me@host
-----BEGIN CERTIFICATE-----\nMIID@K\n-----END CERTIFICATE-----
-----BEGIN PUBLIC KEY-----\nMIIB@K\n-----END PUBLIC KEY-----
SHA256:@43 (ED25519)
fingerprint: MD5:aa:bb:cc:dd:ee:ff:00:11:22:33:44:55:66:77:88:99
pk_live_@24
pk_test_@24
"publicKey": "@B"
"kid": "@U"
{"kty":"RSA","n":"@V@V","e":"AQAB","kid":"@S"}
recaptcha site key: see the console
Bearer authentication is described in RFC 6750
The Authorization header must start with "Bearer "
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
Authorization: Basic ${BASIC_AUTH}
curl -H "Authorization: Bearer $API_TOKEN" https://api.corp/v2
curl -u "$USER:$PASSWORD" https://api.corp
curl -u user:password https://api.corp
docker run -u 1000:1000 -p 8080:80 app:v2
docker login -u "$USER" -p "$PASSWORD" registry.corp
mysql -u root -p app
mysql -h db1 -P 3306 -u app2 appdb
psql -p 5432 -U app2 appdb
ssh -p 2222 -i ~/.ssh/id_ed25519 me@host2
mkdir -p build/output2/x86_64
cp -a src2/. dst2/
tar -b 512 -xf release-1.2.3.tar.gz
python -u script2.py --user bob2
git push -u origin feature/token-refresh-2
unzip -P "$ZIP_PASSWORD" archive2.zip
zip -r9 release2.zip dist
ldd -w lib2.so
sudo -u postgres2 psql
useradd -p "$HASH" deploy2
echo "$PASSWORD" | docker login --password-stdin
echo "done 42" | tee -a build2.log
htpasswd -c .htpasswd2 admin2
Cookie: theme=dark; lang=en; consent=true
Set-Cookie: lang=en-US; Path=/; Max-Age=31536000
cookies = {"sessionid": session_id}
postgres://postgres:postgres@localhost:5432/test
postgres://user:password@localhost/db
redis://localhost:6379/0
mongodb://localhost:27017/app2
https://user@host.corp/path
https://host.corp:8443/a@b/c
git@github.com:org/repo2.git
amqp://guest:guest@localhost:5672
https://api.corp/v1/keys/@U
https://x/y?page=2&sort=created_at&key=name
https://cdn.corp/app.@h20.js
/home/me/.config/app2/tokens.json
node_modules/.pnpm/js-tokens@4.0.0/node_modules/js-tokens/index.js
C:\\Users\\me\\AppData\\token-cache-v2\\x
    at TokenStream.next (/app/src/token-stream2.ts:42:13)
    at async Password.verify (file:///app/dist/password-@h8.js:1:2345)
  File "/app/auth/token_v2.py", line 42, in refresh_token
java.lang.IllegalStateException: token expired at 2024-05-01T10:00:00Z
panic: runtime error: invalid key 0xc000123abc
E   AssertionError: assert token2 == token3
2024-05-01 12:00:01 INFO token refreshed for user 42 in 12ms
2024-05-01T12:00:01Z WARN password attempt 3 of 5 for admin2
level=info msg="key rotated" key_id=@U
May  1 12:00:01 host sshd[123]: Failed password for root from 10.0.0.5 port 22222 ssh2
May  1 12:00:01 host sshd[123]: Accepted publickey for me from 10.0.0.5 port 4242 ssh2: ED25519 SHA256:@43
10.0.0.5 - - [01/May/2024:12:00:01 +0000] "GET /auth/token?grant=refresh2 HTTP/1.1" 200 512
[@h8] token bucket refilled: 100/100
ok 12 - password reset sends an e-mail (34ms)
| password | string | the password of the user, at least 12 |
| API key | required | see `settings2` |
| token | varchar(255) | not null |
| `auth_token` | `string2` | |
- [ ] rotate the API key before 2024-06-01
* `token` (string): the access token, see v2
**Password:** at least 12 characters
The password is stored in 1Password
the token is refreshed every 30m
my api key is in the vault2
your password will expire in 14 days
password for the db is in .env.local2
use token auth instead of basic1
secret santa 2024
key 12345 not found
the key is 42
Press any key to continue2
passphrase-protected key2
pass 3 of 5
pass: true
passed: 312, failed: 2
auth: oauth2
auth_type = aws-sigv4
auth=none
?auth=basic2
auth=("user", "password")
auth=(username, password2)
login("user", "password")
smtp.login(user, password2)
page.fill("#password2", password)
getByLabel("Password2").fill(secret)
credentials: "same-origin"
credentials: include
new NetworkCredential(user, password2)
DriverManager.getConnection(url2, user, password)
psk = load_psk("wlan0")
mnemonic = Mnemonic("english")
mnemonic: MOV r1, r2
phrase: the quick brown fox
variable "db_password" { type = string }
variable "db_password" { default = "" }
password = var.db_password2
password = random_password.db2.result
password = data.aws_secretsmanager_secret_version.db2.secret_string
secret_key = settings.SECRET_KEY_2
kubectl get secret db-creds-2 -o yaml
kubectl create secret generic db --from-file=password.txt
vault kv get secret/app2
vault login -method=oidc role=dev2
vault login
gh secret set DEPLOY_TOKEN2 < token.txt
gh auth login --web2
npm config set registry https://npm.corp/v2
ENV TOKEN_TTL 3600s
ENV PATH=/opt/app2/bin:$PATH
set -x
set -euo pipefail
export PATH="$HOME/.local/bin2:$PATH"
export API_TOKEN="$(cat token2.txt)"
export API_TOKEN=$(vault read -field=token2 secret/x)
$env:PASSWORD = $cred2.Password
"env": {"TOKEN": "${{ secrets.DEPLOY_TOKEN2 }}"}
token: ${{ secrets.GITHUB_TOKEN }}
with: { api-key: "${{ secrets.KEY_2 }}" }
uses: actions/checkout@@I
image: app@sha256:@J
FROM node:20-alpine@sha256:@J
"version": "1.2.3-@h7"
go: h1:@43=
github.com/org/x v1.2.3 h1:@43=
checksum = "@J"
Content-MD5: @E
nonce="@S" integrity="sha384-@K"
Content-Security-Policy: script-src 'nonce-@S'
wss://x.corp/socket?room=@U
bucket-key-enabled: true
keyframes spin2 { from { transform: rotate(0deg) } }
monkeypatch.setenv("HOLDFAST_TOKEN_2", value)
parametrize("token", ["a1", "b2"])
expect(token).toBe(token2)
expect(res.body).toHaveProperty("access_token")
it("returns 401 when the token2 is expired", async () => {
"password", "scram-sha-256"
"token", "token-2", "token-3"
{"type":"token","text":"hello2"}
lastToken === 102 && isParen(pos2)
@I	@U	@H
Z3Jhc3M= dHJlZQ== c2Vh
@h2:@h2:@h2:@h2:@h2:@h2
rsa4096/@h16 2024-05-01 [SC]
0x@I
AAAA@20
hf-internal-testing/tiny-random-gpt2
sk-learn==1.4.2
pat-downs 2024
re_compile_pattern_with_flags
test_token_is_refreshed_when_it_expires_v2
live_reload_enabled_in_development2
api-@h8-staging.corp
npm_config_registry_for_scope_v2
SG.Default.Template.Name2
eyJust.kidding2
passe-partout is not found
price_key: cache_write_5m_mtok
token -> str2
password || config.password2
authorization: see the manual of version-2
the mdp file format
a clave of drums2
key_press_handler_of_the_window_2
pass_context = jinja2.pass_context
100%3A%2F
Tom &quot;key&quot; Smith
<key>CFBundleIdentifier</key><string>com.corp.app2</string>
X-Request-Id: @T
X-Amzn-Trace-Id: Root=1-@h8-@h24
X-Correlation-ID: @U
X-Cache-Hash: @H
X-Content-Digest: sha256=@J
X-GitHub-Delivery: @U
X-Served-By: cache-fra-@h8
X-Forwarded-For: 10.0.0.1
X-Frame-Options: SAMEORIGIN
max-width: 1200px; flex-basis: auto2
jwt.sign(payload, privateKey2, { algorithm: 'RS256' })
jwt.verify(token, process.env.JWT_KEY2)
jwt.decode(token, algorithms=["HS256", "RS256"])
crypto.createHmac('sha256', key2).update(body).digest('hex')
hmac.new(key, msg, hashlib.sha256).hexdigest()
crypto.createHash('sha256').update('hello world 2').digest('hex')
createCipheriv('aes-256-gcm', key2, iv2)
AES.new(key, AES.MODE_GCM, nonce=nonce2)
Fernet(key2).decrypt(token2)
new AzureKeyCredential(process.env.KEY2)
new DefaultAzureCredential("managed-identity-2")
client.get("/users/42/items", params={"page": 2})
client = TestClient(app2)
bot.run("production-worker-2")
openai("gpt-4o-mini-2024-07-18")
github("org/repository-name-2")
net use Z: /delete
net use Z: \\srv\\share2 /persistent:no
net user bob /active:yes
scp build2.tar deploy@web1:/srv/app2/releases
git@github.com:org/repo2.git
docker pull registry.corp:5000/team/app2:v1.2@sha256:@J
npm install @scope/pkg2@1.2.3 other/pkg:x@2
pnpm-lock: /@babel/core2@7.1.0(x@1)
src/app2/main.py:42:foo@host
see docs/guide2.md:12 or mail bob2@corp.example
sudo -S <<< "$PASSWORD"
sudo -S <<< ${PW2}
cat <<< "hello world 2"
read -r a b <<< "one two2"
wc -l <<< some_text_2
openssl enc -aes-256-cbc -K "$KEY2" -iv 0 -in a
openssl enc -aes-256-cbc -in a2 -out b2
printf '%s\n' "$TOKEN2" | docker login --password-stdin
printf 'line 2\n' | tee out2.txt
printf "%s" value2 | grep -c value2
echo "token2" | wc -c
snmpget -v2c -c "$COMMUNITY2" host oid
snmpwalk -v 2c -c public host
the community edition2 of the server
community: https://github.com/org/repo2
Community2024 meets in May
radius-server key $KEY2
border-radius key 12px
dict key password2reset of table
option key is_required2
at 10:5432:12 the app2 was up
host:5432/db2
2024-05-01T10:43:12:345 app2 started
row 432:10:20:30
INSERT INTO users (name, password) VALUES (?, ?)
INSERT INTO users (name, password) VALUES ('bob', $2)
INSERT INTO tokens (id, created_at) VALUES ('tok2', '2024-05-01 10:00:00')
INSERT INTO users (name, password_hash_rounds) VALUES ('bob', '12')
UPDATE users SET password = $1 WHERE id = 42
UPDATE config SET value='debug2' WHERE name='log_level'
if password:\n    return hash_it(password)
if token:\n    value2 = parse(token)
password:\n  type: string\n  minLength: 12
token:\n  description: the token of the 2nd user
password:\n  - required2\n  - min:12
secrets:\n  - source: db_password2
    secrets:\n      - my_secret_v2
token = (\n    request.headers.get("X-Token2")\n)
password = (\n    f"{user2}:{name}"\n)
# Token\n\nThe token2 is refreshed every hour.
Password\n--------\nYour password must have 12 signs.
API Key\nRequired2
"password":\n  {"type": "string2"}
"tokens": ["the", "quick2", "fox"]
"api_keys": ["primary-2", "secondary-2"]
passwords: [str, "Field2"]
keys: [a1, b2, c3]
<td>Password</td><td>required2</td>
<th>Token</th><td>varchar(255)</td>
<b>Token:</b> <code>string2</code>
<dt>API key</dt><dd>see settings-2</dd>
<label>Password</label><input value="">
<token type="string2">name2</token>
<password><![CDATA[]]></password>
BUILD_PAT_H=/opt/x2
GITHUB_PAT=$TOKEN2
GITHUB_PAT: ${{ secrets.PAT_2 }}
path_pat = re.compile("[a-z]+2")
_pat = "^[0-9]{2}$"
seed=1234567
random_seed: 424242
salt = os.urandom(16)
_salt = "salt-of-the-earth-2"
bearer: true
jwt: enabled2
const jwt = require("jsonwebtoken2");
sessionid: @U
"session_id": "@U"
"sessionID":"ses_@24"
toolu_@24 and msg_@24
"id":"call_@24"
password[32] = {0};
char token[64];
password as string2
token: Some(token2)
password: None or "unset2"
return token or "anonymous-2"
password {\n  margin: 2px;\n}
“password” and ‘token2’ are words
password “of the 2nd” user
the user’s token2 is old
Пароль и токен2
наш token не найден2
price：12，token：3
\\u0041-\\u005a and \\u0061-\\u007a2
100%61 of a%20b
&#97;&#98;2 are letters
K@20 and 5@20
5H@10 L@30
socket.connect("tcp://10.0.0.1:5555", "v2.1")
signal.connect("notify::visible-2", "on_change2")
connect("db2.corp.net", "app", "shop_prod2", charset="utf8mb4")
new PDO("mysql:host=db2;dbname=x2", "root", "")
conn = connect(host, user, os.environ["DB_PASS2"], "app2")
root.bind("<Key-1>", "do_it2")
app.login("bob2", password)
self.client.login(username="bob2", password=pw)
ldap_bind($ds, "cn=admin2,dc=x", $password);
l.simple_bind_s("cn=admin,dc=x", getpass())
smtp.PlainAuth("", user, pass, "smtp.gmail2.com")
open("a2.txt", "rb2")
Client.start("worker-2", "queue2")
redis.auth("${REDIS_PASS2}")
redis.auth("<password-2>")
net user bob2 /delete
net user administrator /active:yes
der Netuser user 2x ist da
a\u200bb2 and c\u200dd3
price:\u00a012\u00a0EUR
id,token,pos\n1,hello,NOUN\n2,covid19,NOUN
model,tokens,cost\ngpt-4o,128000,0.5
name,password_policy,token_ttl\nauth,strong2,3600
| Field | Password | Note |\n|---|---|---|\n| a2 | required | must have 12 |
user, password, and token are needed\nin line 2, or line2, of it
import (\n    user, password, token,\n    Abc12345, Def12345, Ghi12345,\n)
key,value,time\nabc12345,def12345,2024-01-01
NAME    TOKEN    AGE\nci      <none>   3d2h
<input name="password" placeholder="Password" autoComplete="current-password" />
password = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db"
PGPASSWORD="$DB_PASS2X" psql
System.Web, Version=4.0.0.0, PublicKeyToken=b03f5f7f11d50a3a
SMTP_PASS=\nSMTP_HOST=vault2.internal
$ cat token_count.txt\n12345
$ git rev-parse HEAD\n3f2b9c1d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b
$ cat package.json | grep token\n"token-list2"
$ echo $PATH2\n/usr/bin2:/bin2
$ kubectl get secret\nNAME   TYPE\nx2     Opaque
$ cat secret.yaml\nkind: Secret2
"passphrase": "please enter your new passphrase"
passphrase: "must not match the old one"
PASS src/app2.test.js
--- PASS: TestLogin2FA (0.00s)
public key of user bob2 on host >file2.txt
log in 2 the new client("x", "y2")
open("Data2.txt", "My_File2.txt")
Client("worker-2", "queue2")
key: "d41d8cd98f00b204e9800998ecf8427e"
my key is lost2 and the key is found
dashboard /v 2 /rp 3 /p: 4
send "exit2\r"
Is the password for user2024? It is not.
the password of server12 was set in v2.0.1!
reset_password(user2, "a!B") # password policy
| 'CryptoKey'\n| 'DOMMatrixReadOnly'\n| 'GPUCompilationInfo'
"""


def harmless(rng: random.Random) -> list[str]:
    """Each of the lines twice, with other values."""
    lines = [line for line in HARMLESS.splitlines() if line]
    return [
        _filled(line.replace("~", "^").replace("`", "\x00"), rng)[0].replace("\x00", "`")
        for line in lines * 2
    ]
