# ruff: noqa: RUF001 - signs of many scripts, which is what it is about
"""What secrets look like: one row a kind, and the fixed characters that each begins with.

Data alone, so that the hook path can ask `may_hold_secret` without loading `re`. `holdfast.base.redact`
reads the rows; `tests/base/secrets_corpus.py` has examples of each kind.
"""

from __future__ import annotations

Rule = tuple[str, str, str]
"""Kind; literal prefixes; what follows them. No repetition in a repetition."""

_HEX, _ALNUM, _URL = "[0-9a-fA-F]", "[A-Za-z0-9]", "[A-Za-z0-9_-]"
_B64 = "[A-Za-z0-9+/_-]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_END = "(?![A-Za-z0-9_])"

WORD_RULES: tuple[Rule, ...] = (
    # Begin at the start of a word of at least `SHORTEST_WORD` letters, digits, `_`, `-`, `.` and `~`.
    ("anthropic-key", "sk-ant-", f"{_URL}{{20,}}"),
    ("openai-key", "sk-", f"(?!ant-)(?=[a-z_-]{{0,80}}[0-9A-Z]){_URL}{{20,}}"),
    ("openai-key", "sess-", f"{_ALNUM}{{40}}{_END}"),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", f"{_ALNUM}{{30,}}"),
    ("github-token", "github_pat_", "[A-Za-z0-9_]{30,}"),
    (
        "gitlab-token",
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt-",
        "[A-Za-z0-9_.-]{20,}",
    ),
    ("gitlab-token", "GR1348941", f"{_URL}{{20}}"),
    ("aws-key", "AKIA ASIA ABIA ACCA", f"[A-Z0-9]{{16}}{_END}"),
    ("aws-session-token", "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz", f"{_B64}{{40,}}=*"),
    ("aws-key", "ABSK bedrock-api-key-", f"{_B64}{{60,}}=*"),
    ("aws-key", "amzn.mws.", _UUID),
    ("google-key", "AIza", f"{_URL}{{35}}"),
    ("google-token", "ya29.", "[A-Za-z0-9_.-]{20,}"),
    ("google-secret", "GOCSPX-", f"{_URL}{{20,}}"),
    ("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs-", "[A-Za-z0-9%-]{10,}"),
    ("slack-token", "xoxe.xox", "[bp]-[A-Za-z0-9-]{10,}"),
    ("slack-token", "xapp- xwfp-", "[A-Za-z0-9-]{20,}"),
    (
        "stripe-key",
        "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_ sk_org_live_ sk_org_test_",
        f"{_ALNUM}{{16,}}",
    ),
    ("square-token", "sq0atp- sq0csp- sq0idp- sq0ids-", f"{_URL}{{20,}}"),
    ("square-token", "EAAA", f"{_URL}{{56,64}}{_END}"),
    ("facebook-token", "EAA", f"{_ALNUM}{{80,}}"),
    ("instagram-token", "IGQV IGQW", f"{_URL}{{60,}}"),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_", f"{_HEX}{{32}}"),
    ("twilio-key", "SK", f"[0-9a-f]{{32}}{_END}"),
    ("sendgrid-key", "SG.", f"{_URL}{{16,40}}\\.{_URL}{{16,}}"),
    ("mailgun-key", "key- pubkey-", f"[0-9a-f]{{32}}{_END}"),
    ("brevo-key", "xkeysib- xsmtpsib-", f"{_HEX}{{64}}-{_ALNUM}{{16}}"),
    ("resend-key", "re_", f"{_ALNUM}{{6,10}}_{_ALNUM}{{18,}}"),
    ("huggingface-token", "hf_ api_org_", f"{_ALNUM}{{30,}}"),
    ("replicate-token", "r8_", f"{_ALNUM}{{30,}}"),
    ("groq-key", "gsk_", f"{_ALNUM}{{30,}}"),
    (
        "model-key",
        "pplx- xai- nvapi- csk- tvly- voyage- jina_ esecret_ rpa_ tgp_v1_ e2b_ pcsk_ wandb_v1_",
        f"{_URL}{{24,}}",
    ),
    ("model-key", "lsv2_pt_ lsv2_sk_ lsv2_pk_", "[A-Za-z0-9_]{32,}"),
    ("model-key", "fw_", f"{_ALNUM}{{22,}}"),
    ("model-key", "fc- sk_", f"[0-9a-f]{{32,48}}{_END}"),
    ("model-key", "pa- ak- as-", f"(?=[A-Za-z]{{0,60}}[0-9]){_ALNUM}{{22,}}{_END}"),
    ("vault-token", "hvs. hvb. hvr.", f"{_URL}{{20,}}"),
    ("vault-token", "s. b. r.", f"(?=[A-Za-z]{{0,23}}[0-9]){_ALNUM}{{24}}{_END}"),
    ("docker-token", "dckr_pat_ dckr_oat_", f"{_URL}{{20,}}"),
    ("npm-token", "npm_", f"{_ALNUM}{{36}}{_END}"),
    ("pypi-token", "pypi-", f"{_URL}{{50,}}"),
    ("rubygems-key", "rubygems_", f"{_HEX}{{40,}}"),
    ("nuget-key", "oy2", f"[a-z0-9]{{43}}{_END}"),
    ("crates-token", "cio", f"{_ALNUM}{{32}}{_END}"),
    ("clojars-token", "CLOJARS_ clojars_", "[A-Za-z0-9]{50,}"),
    ("packagist-token", "packagist_ort_ packagist_uut_ packagist_oat_", f"{_ALNUM}{{32,}}"),
    ("artifactory-token", "AKCp cmVmd", f"{_ALNUM}{{50,}}"),
    ("databricks-token", "dapi dkea dose", f"[0-9a-f]{{32}}(?:-[0-9])?{_END}"),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", f"{_HEX}{{40,}}"),
    ("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.", "[A-Za-z0-9_.-]{40,}"),
    ("dynatrace-token", "dt0c01. dt0s01. dt0s02. dt0s16.", f"{_ALNUM}{{8,24}}\\.{_ALNUM}{{40,}}"),
    ("newrelic-key", "NRAK- NRII- NRJS- NRRA- NRAA- NRIQ- NRSP-", f"{_URL}{{18,}}"),
    ("grafana-token", "glc_ glsa_ eyJrIjoi", f"{_B64}{{30,}}=*"),
    ("sentry-token", "sntrys_ sntryu_ sntrya_ sntryi_", f"{_B64}{{40,}}=*"),
    ("linear-key", "lin_api_ lin_oauth_ lin_wh_", f"{_ALNUM}{{30,}}"),
    ("notion-token", "secret_ ntn_", f"{_ALNUM}{{40,}}"),
    ("figma-token", "figd_ figo_ figoh_ figor_", f"{_URL}{{30,}}"),
    ("airtable-token", "pat", f"{_ALNUM}{{14}}\\.[0-9a-f]{{64}}"),
    ("atlassian-token", "ATATT3 ATCTT3 ATSTT3 ATBB ATTA ATOA", "[A-Za-z0-9_=-]{24,}"),
    ("bitbucket-token", "BBDC-", "[A-Za-z0-9+/@_-]{40,}"),
    ("circleci-token", "CCIPAT_ CCIPRJ_", "[A-Za-z0-9_]{40,}"),
    ("buildkite-token", "bkua_ bkaj_ bkpt_ bkct_", f"{_ALNUM}{{30,}}"),
    ("sonar-token", "sqp_ squ_ sqa_ sqb_", f"{_HEX}{{40}}"),
    ("snyk-token", "snyk_uat. snyk_sat.", "[A-Za-z0-9_.-]{30,}"),
    ("sourcegraph-token", "sgp_ slk_", f"(?:{_HEX}{{16}}_|local_)?{_HEX}{{40,64}}"),
    ("postman-key", "PMAK-", f"{_HEX}{{24}}-{_HEX}{{34}}"),
    ("pulumi-token", "pul-", f"{_HEX}{{40}}"),
    ("prefect-key", "pnu_ pnb_", f"{_ALNUM}{{30,}}"),
    ("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_ pscale_app_secret_", "[A-Za-z0-9_.=-]{30,}"),
    ("supabase-key", "sbp_ sb_secret_", f"{_URL}{{24,}}"),
    ("neon-key", "napi_", f"{_ALNUM}{{40,}}"),
    ("fly-token", "fo1_", f"{_URL}{{40,}}"),
    ("heroku-key", "HRKU-", "[A-Za-z0-9_-]{30,}"),
    ("netlify-token", "nfp_ nfc_ nfo_ nfu_ nfb_", f"{_ALNUM}{{36}}"),
    ("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", f"{_ALNUM}{{24,}}"),
    ("render-key", "rnd_", f"{_ALNUM}{{24,}}"),
    ("cloudflare-key", "v1.0-", f"{_HEX}{{24}}-{_HEX}{{100,}}"),
    ("cloudflare-key", "cfut_ cfat_ cfk_", f"{_URL}{{36,}}"),
    ("tailscale-key", "tskey-", "[A-Za-z0-9-]{16,}"),
    ("twitter-token", "AAAAAAAAAAAAAAAAAAAAA", "[A-Za-z0-9%_-]{30,}"),
    ("dropbox-token", "sl.", "(?:u\\.)?[A-Za-z0-9_-]{60,}"),
    ("hubspot-token", "pat-na1- pat-na2- pat-eu1- pat-ap1-", _UUID),
    ("intercom-token", "dG9rO", f"{_B64}{{30,}}=*"),
    ("typeform-token", "tfp_", "[A-Za-z0-9_.=-]{36,}"),
    ("contentful-token", "CFPAT-", f"{_URL}{{36,}}"),
    ("mapbox-token", "sk.eyJ tk.eyJ", f"{_URL}{{20,}}\\.{_URL}{{16,}}"),
    ("launchdarkly-key", "sdk- api- mob-", f"{_UUID}{_END}"),
    ("okta-token", "00", f"(?=[A-Z0-9_-]{{0,40}}[a-z])(?=[a-z0-9_-]{{0,40}}[A-Z]){_URL}{{40}}{_END}"),
    ("onepassword-key", "A3-", "[A-Z0-9]{6}-[A-Z0-9]{5,11}-[A-Z0-9-]{15,24}"),
    ("age-key", "AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", "[A-Z0-9]{40,}"),
    (
        "paseto",
        "v1.local. v2.local. v3.local. v4.local. v1.public. v2.public. v3.public. v4.public.",
        f"{_URL}{{30,}}",
    ),
    ("openshift-token", "sha256~", f"{_URL}{{43}}"),
    ("alibaba-key", "LTAI", f"{_ALNUM}{{12,24}}{_END}"),
    ("tencent-key", "AKID", f"{_ALNUM}{{32}}{_END}"),
    ("volcengine-key", "AKLT", f"{_ALNUM}{{30,}}"),
    ("yandex-key", "AQVN", f"{_URL}{{34,}}"),
    ("yandex-key", "YC", f"(?=[A-Za-z]{{0,60}}[0-9]){_URL}{{38}}{_END}"),
    ("yandex-token", "t1. y0_ y1_ y2_ y3_", "[A-Za-z0-9_-]{36,}[A-Za-z0-9_.=-]*"),
    ("adobe-secret", "p8e-", f"{_URL}{{32}}"),
    ("flutterwave-key", "FLWSECK_TEST- FLWSECK-", "[A-Za-z0-9]{12,}"),
    ("easypost-key", "EZAK EZTK", f"{_ALNUM}{{54}}{_END}"),
    ("frameio-token", "fio-u-", "[A-Za-z0-9_=-]{60,}"),
    ("infracost-key", "ico-", f"{_ALNUM}{{32}}{_END}"),
    ("readme-key", "rdme_", "[a-z0-9]{60,}"),
    ("plaid-token", "access-sandbox- access-development- access-production-", _UUID),
    ("live-key", "live_ test_", f"(?=[A-Za-z]{{0,48}}[0-9])(?:pub_)?{_ALNUM}{{32,48}}{_END}"),
    ("octopus-key", "API-", f"[A-Z0-9]{{25,32}}{_END}"),
    ("harness-token", "pat. sat.", f"{_URL}{{22}}\\.{_HEX}{{24}}\\.{_ALNUM}{{20}}"),
    ("clickup-token", "pk_", f"[0-9]{{6,10}}_[A-Z0-9]{{32}}{_END}"),
    ("clickhouse-key", "4b1d", f"(?=[a-f0-9]{{0,38}}[A-Zg-z]){_ALNUM}{{38}}{_END}"),
    ("salesforce-token", "00D", f"{_ALNUM}{{12,15}}![A-Za-z0-9_.-]{{60,}}"),
    ("scalingo-token", "tk-us-", f"{_URL}{{48}}"),
    ("bitcoin-key", "xprv", "[1-9A-HJ-NP-Za-km-z]{100,112}"),
    ("defined-token", "dnkey-", "[a-z0-9_=-]{26}-[a-z0-9_=-]{52}"),
    ("intra42-secret", "s-s4t2ud- s-s4t2af-", f"{_HEX}{{64}}"),
    ("discord-token", "mfa.", f"{_URL}{{60,}}"),
    ("discord-token", "MT Mj Mz ND NT Nj Nz OD OT", f"{_URL}{{21,27}}\\.{_URL}{{6}}\\.{_URL}{{27,}}"),
    ("telegram-token", "AA", f"{_URL}{{33}}{_END}"),
    ("kubernetes-token", "kubeconfig-user- kubeconfig-u-", "[a-z0-9.-]{6,40}:[a-z0-9]{50,}"),
    ("rancher-token", "token-", "[a-z0-9]{5}:[a-z0-9]{50,}"),
    ("teleport-token", "ghs1_ gat_ gto_", f"{_ALNUM}{{36,}}"),
    ("adafruit-key", "aio_", f"{_ALNUM}{{28}}{_END}"),
    ("apify-token", "apify_api_", f"{_ALNUM}{{30,}}"),
    ("cockroach-key", "CCDB1_", f"{_ALNUM}{{22}}_{_ALNUM}{{40}}"),
    ("canva-token", "cnvca", f"{_URL}{{50,}}"),
    ("settlemint-token", "sm_aat_ sm_pat_ sm_sat_", f"{_ALNUM}{{16}}{_END}"),
    ("model-key", "llx-", f"{_ALNUM}{{40,}}"),
    ("mercury-token", "mercury_production_ mercury_sandbox_", "[a-z]{2,6}_[A-Za-z0-9_]{20,}"),
    ("midtrans-key", "Mid-server- SB-Mid-server-", f"{_URL}{{20,}}"),
    ("mongodb-secret", "mdb_sa_sk_", f"{_URL}{{36,}}"),
    ("onesignal-key", "os_v2_app_ os_v2_org_", "[a-z0-9]{60,}"),
    ("persona-key", "persona_production_ persona_sandbox_", _UUID),
    ("pinterest-token", "pina_ pinc_ pinr_", f"{_ALNUM}{{60,}}"),
    ("polar-token", "polar_oat_ polar_pat_ polar_whs_", f"{_ALNUM}{{30,}}"),
    ("posthog-key", "phx_ phs_ pha_ phr_", f"{_URL}{{36,}}"),
    ("samsara-token", "samsara_api_", f"{_ALNUM}{{24,}}"),
    ("telnyx-key", "KEY01", f"[A-Z0-9]{{30}}_{_ALNUM}{{22}}"),
    ("thunderstore-token", "tss_", f"{_ALNUM}{{36}}{_END}"),
    ("valtown-token", "vtwn_", f"{_ALNUM}{{24,}}"),
    ("wakatime-key", "waka_sec_ waka_tok_ waka_ref_", f"{_ALNUM}{{60,}}"),
    ("wakatime-key", "waka_", _UUID),
    ("xendit-key", "xnd_production_ xnd_development_", f"{_ALNUM}{{30,}}"),
    ("zuplo-key", "zpka_", f"{_ALNUM}{{24,}}_{_HEX}{{8}}"),
    ("checkout-key", "sk_sbox_", "[A-Za-z0-9*=#$-]{20,}"),
    ("cfx-key", "cfxk_", f"{_ALNUM}{{20}}_{_ALNUM}{{4,8}}"),
    ("pangea-token", "pts_ pti_ ptu_ pcl_", f"[a-zA-Z0-9]{{32}}{_END}"),
    ("paddle-key", "pdl_live_apikey_ pdl_sdbx_apikey_", "[A-Za-z0-9_]{40,}"),
    ("permit-key", "permit_key_", f"{_ALNUM}{{40,}}"),
    ("rootly-token", "rootly_", f"{_ALNUM}{{40,}}"),
    ("trigger-key", "tr_dev_ tr_prod_ tr_stg_ tr_pat_", f"{_ALNUM}{{20,}}"),
    (
        "infisical-token",
        "st.",
        f"{_UUID}\\.{_HEX}{{32}}\\.{_HEX}{{32}}|{_HEX}{{24}}\\.{_HEX}{{32}}\\.{_HEX}{{32}}",
    ),
    ("swarm-token", "SWMTKN-1-", "[a-z0-9]{40,60}-[a-z0-9]{20,30}"),
    ("mailersend-key", "mlsn.", f"{_HEX}{{64}}"),
    ("cursor-key", "key_", f"{_HEX}{{64}}{_END}"),
    ("browserbase-key", "bb_live_ bb_test_", f"(?=[A-Za-z_-]{{0,40}}[0-9]){_URL}{{24,}}"),
    ("datadog-token", "ddpat_", f"{_ALNUM}{{16,}}_{_ALNUM}{{24,}}"),
    ("netbird-token", "nbp_", f"{_ALNUM}{{36}}{_END}"),
    ("portainer-token", "ptr_", f"{_B64}{{40,}}=*"),
    ("dbt-token", "dbtc_ dbtu_", f"{_URL}{{36,}}=*"),
    ("nostr-key", "nsec1", f"[02-9ac-hj-np-z]{{58}}{_END}"),
    ("matrix-token", "syt_", f"{_B64}{{4,80}}=*_[A-Za-z]{{20}}_{_ALNUM}{{6}}{_END}"),
    ("aiven-password", "AVNS_", f"{_URL}{{16,}}"),
    ("elastic-key", "essu_", f"{_B64}{{40,}}=*"),
    ("axiom-token", "xaat- xapt-", _UUID),
    ("riot-key", "RGAPI-", _UUID),
    ("pubnub-key", "sec-c-", "(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9+/]{40,}=*"),
    ("stytch-secret", "secret-live- secret-test-", f"(?=[A-Za-z_-]{{0,30}}[0-9]){_URL}{{32,}}=*"),
    ("statsig-key", "secret-", f"(?=[A-Za-z]{{0,40}}[0-9]){_ALNUM}{{40,}}{_END}"),
    ("growthbook-key", "secret_admin_ secret_readonly_ secret_user_", f"{_ALNUM}{{30,}}"),
    ("flagsmith-key", "ser.", f"(?=[A-Za-z]{{0,21}}[0-9]){_ALNUM}{{22}}{_END}"),
    ("jsr-token", "jsrp_ jsrd_", f"{_ALNUM}{{36,}}"),
    ("upcloud-token", "ucat_", f"[A-Z0-9]{{26}}{_END}"),
    ("exoscale-key", "EXO", f"{_HEX}{{24}}{_END}"),
    ("yandex-key", "YCA", f"{_URL}{{36,}}{_END}"),
    ("google-key", "GOOG1E GOOG", f"(?=[A-Z]{{0,57}}[0-9])[A-Z0-9]{{57,58}}{_END}"),
    ("mercadopago-token", "APP_USR- TEST-", f"[0-9]{{14,18}}-[0-9]{{6}}-{_HEX}{{32}}"),
    ("shippo-token", "shippo_live_ shippo_test_", f"{_HEX}{{40}}"),
    ("klaviyo-key", "pk_", f"[0-9a-f]{{34}}{_END}"),
    ("courier-key", "pk_prod_ pk_test_", f"[A-Z0-9]{{28}}{_END}"),
    (
        "live-key",
        "live_ test_",
        f"(?=[A-Za-z_-]{{0,30}}[0-9])(?=[A-Z0-9_-]{{0,30}}[a-z])(?=[a-z0-9_-]{{0,30}}[A-Z]){_URL}{{30,40}}{_END}",
    ),
    ("live-key", "sk_test_ sk_live_", f"(?=[A-Za-z_-]{{0,30}}[0-9]){_URL}{{32,}}"),
    ("boundary-token", "at_", f"{_ALNUM}{{10}}_{_ALNUM}{{100,}}"),
    ("pushbullet-token", "o.", f"(?=[A-Za-z]{{0,31}}[0-9])(?=[a-z0-9]{{0,31}}[A-Z]){_ALNUM}{{32}}{_END}"),
    ("adyen-key", "AQE", f"{_ALNUM}{{40,}}-{_B64}{{20,}}=*"),
    ("segment-token", "sgp_", f"{_ALNUM}{{64}}{_END}"),
    (
        "authress-key",
        "sc_ ext_ scauth_ authress_",
        f"{_ALNUM}{{5,40}}\\.{_ALNUM}{{4,6}}\\.acc[_-]{_URL}{{10,40}}\\.[A-Za-z0-9+/_=-]{{30,}}",
    ),
    ("lob-key", "test_pub_ live_pub_", f"{_HEX}{{31}}{_END}"),
    ("duffel-token", "duffel_live_ duffel_test_", f"{_URL}{{36,}}=*"),
    ("vercel-token", "vercel_blob_rw_", f"{_ALNUM}{{12,}}_{_ALNUM}{{20,}}"),
    ("honeycomb-key", "hcaik_ hcbik_ hcaic_ hcbic_ hcamk_ hcbmk_", f"{_ALNUM}{{40,}}"),
    ("ubidots-token", "BBFF- BBUS-", f"{_ALNUM}{{30,}}"),
    ("firebase-token", "APA91b", f"{_URL}{{60,}}"),
    ("password-hash", "grub.pbkdf2.", "sha[0-9]{1,3}\\.[0-9]{1,9}\\.[0-9A-Fa-f.]{64,}"),
    ("password-hash", "aad3b435b51404eeaad3b435b51404ee", ":[0-9a-fA-F]{32}"),
    ("password-hash", "md5", f'[0-9a-f]{{32}}{_END}(?=\\\\{{0,15}}")'),
    ("password-hash", "e1NTSEF9 e1NTSEF1MTJ9 e0NSWVBUfQ e1NIQX", f"{_B64}{{20,}}=*"),
    ("k3s-token", "K10", "[a-z]?[0-9a-f]{63,64}::[a-z:]{1,20}:[A-Za-z0-9]{16,}"),
    ("cloudflare-token", "eyJhIjoi", f"{_B64}{{60,}}=*"),
    ("docker-login", "eyJhdXRocyI6", f"{_B64}{{40,}}=*"),
    ("private-key", "MII", "[A-Za-z0-9+/]{3}IBA(?:z|DAN|AKC)[A-Za-z0-9+/]{40,}=*"),
    ("zoho-token", "1000.", f"{_HEX}{{32}}\\.{_HEX}{{32}}{_END}"),
    # In base64 once more: a JWT's `{"alg"` and `{"typ"`, and the first line of a private key.
    ("jwt", "ZXlKaGJHY2lP ZXlKMGVYQWlP ZXlKcmFXUWlP", f"{_B64}{{60,}}=*"),
    (
        "private-key",
        "LS0tLS1CRUdJTiBQUklWQVRF LS0tLS1CRUdJTiBSU0EgUFJJVkFU LS0tLS1CRUdJTiBFQyBQUklWQVRF"
        " LS0tLS1CRUdJTiBPUEVOU1NI LS0tLS1CRUdJTiBFTkNSWVBURUQg LS0tLS1CRUdJTiBEU0EgUFJJVkFU"
        " LS0tLS1CRUdJTiBQR1AgUFJJVkFU",
        f"{_B64}{{40,}}=*",
    ),
)

LONG_RULES: tuple[tuple[str, str], ...] = (
    # Without a prefix of their own: whole words of at least `LONG_WORD` characters. The mark in them
    # is looked at first: that is quick.
    ("terraform-token", f"(?=.{{14}}\\.atlasv1){_ALNUM}{{14}}\\.atlasv1\\.{_URL}{{40,}}"),
    ("azure-secret", f"(?=.{{3}}[0-9]Q~)[A-Za-z0-9_~.-]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{31,34}}{_END}"),
    ("azure-token", f"(?=.{{76}}AZDO){_ALNUM}{{76}}AZDO{_ALNUM}{{4}}{_END}"),
    ("azure-key", f"(?=.{{52}}JQQJ9){_ALNUM}{{52}}JQQJ9{_ALNUM}{{20,30}}{_END}"),
    ("newrelic-key", f"(?=.{{36}}NRAL){_HEX}{{36}}NRAL{_END}"),
    ("mailchimp-key", f"(?=.{{32}}-us)[0-9a-f]{{32}}-us[0-9]{{1,2}}{_END}"),
    ("asana-token", f"(?<=[0-9]{{10}}:)[0-9a-f]{{32}}{_END}"),
    ("maxmind-key", f"(?=.{{6}}_.{{29}}_mmk){_ALNUM}{{6}}_{_ALNUM}{{29}}_mmk{_END}"),
    ("ngrok-token", f"(?=[12].{{26}}_)[12]{_ALNUM}{{26}}_{_ALNUM}{{20,22}}{_END}"),
    ("azure-key", f"{_ALNUM}{{38,44}}\\+(?:ACR|AST){_ALNUM}{{4,8}}{_END}"),
    (
        "zhipu-key",
        f"(?=.{{32}}\\.)[0-9a-f]{{32}}\\.(?=[A-Za-z]{{0,15}}[0-9])(?=[a-z0-9]{{0,15}}[A-Z]){_ALNUM}{{16}}{_END}",
    ),
    ("deepl-key", f"{_UUID}(?=:fx{_END})"),
    (
        "bitcoin-key",
        "(?<![A-Za-z0-9+/=%-])(?=[5KL])(?=[^0-9]{1,40}[0-9])(?=[^a-z]{1,40}[a-z])(?:5[HJK]|[KL][1-9A-HJ-NP-Za-km-z]{2})[1-9A-HJ-NP-Za-km-z]{49}(?![A-Za-z0-9_+/=%-])",
    ),
    ("bitwarden-token", f"0\\.{_UUID}\\.{_ALNUM}{{30}}:{_B64}{{20,}}=*"),
)

SIGN_RULES: tuple[tuple[str, str, str, str], ...] = (
    # Kind; fixed characters that may stand anywhere; what follows them and stays; what goes.
    (
        "live-key",
        "_",
        "(?<!pk_)(?:live|prod|secret|sandbox)_",
        f"(?=[A-Za-z]{{0,40}}[0-9]){_ALNUM}{{24,}}{_END}",
    ),
    ("stripe-key", "_", "(?<=whsec_)", "[A-Za-z0-9+/=_-]{20,}"),
    ("onepassword-token", "_", "(?<=ops_)", f"eyJ{_B64}{{60,}}=*"),
    ("fly-token", "_", "(?:(?<=fm1r_)|(?<=fm1a_)|(?<=fm2_))", "[A-Za-z0-9+/=,_]{60,}"),
    ("password-hash", "$", "", "2[abxy]\\$[0-9]{2}\\$[./A-Za-z0-9]{53}"),
    ("password-hash", "$", "", "(?:[1567y]|gy|apr1)\\$[./A-Za-z0-9=$]{0,40}\\$[./A-Za-z0-9]{20,}"),
    ("password-hash", "$", "", "argon2[a-z]{1,2}\\$[A-Za-z0-9+/=,$-]{40,}"),
    ("password-hash", "{SSHA", "(?:256|384|512)?\\}", "[A-Za-z0-9+/]{24,}=*"),
    ("braintree-token", "$", "(?<=access_token\\$)", "(?:production|sandbox)\\$[0-9a-z]{16}\\$[0-9a-f]{32}"),
    ("google-token", "/0", "", f"(?:(?<=1//0){_URL}{{30,}}|(?<=4/0)A{_URL}{{40,}})"),
    (
        "password-hash",
        "$",
        "(?:(?<=pbkdf2_sha256\\$)|(?<=pbkdf2_sha1\\$)|(?<=pbkdf2\\$))[0-9]{1,9}\\$",
        "[A-Za-z0-9]{6,40}\\$[A-Za-z0-9+/]{20,}=*",
    ),
    (
        "password-hash",
        "$",
        "(?:(?<=SCRAM-SHA-256\\$)|(?<=SCRAM-SHA-1\\$))[0-9]{1,9}:",
        "[A-Za-z0-9+/=]{8,60}\\$[A-Za-z0-9+/=]{20,}:[A-Za-z0-9+/=]{20,}",
    ),
    ("webhook", "hook", "(?<=/webhook)s/", f"[0-9]{{15,22}}/{_URL}{{40,}}"),
    ("webhook", "hook", "(?<=/hook)/", _UUID),
    ("webhook", "hook", "(?<=/hook)s/", "[a-z0-9]{26}(?![a-z0-9])"),
    (
        "webhook",
        "hook",
        "s\\.slack\\.com/(?:services|workflows|triggers|commands|actions)/",
        "[A-Za-z0-9/_-]{20,}",
    ),
    ("webhook", "hook", "s\\.zapier\\.com/hooks/catch/", "[0-9]{1,20}/[A-Za-z0-9/]{5,}"),
    ("webhook", "hook", "(?<=office\\.com/webhook)(?:b2)?/", "[A-Za-z0-9@/-]{60,}"),
    ("signature", "ig", "(?<=[?&;]sig)=", "[A-Za-z0-9%+/_=-]{24,}"),
    ("signature", "ig", "nature=", "[A-Za-z0-9%+/_=~-]{32,}"),
    (
        "bundler-login",
        "_",
        "(?<=BUNDLE_)[A-Z0-9_]{3,60}[=:] ?[\"']?",
        "[^\\s:\"'\\\\]{1,64}:[^\\s\"'\\\\]{6,100}",
    ),
    ("wordpress-salt", "_", "SALT['\"],\\s{0,12}['\"]", "[^\\r\\n'\"\\\\]{40,100}"),
    ("putty-key", "Private-Lines:", " [0-9]{1,4}", "(?:[\\r\\n]|\\\\+[rn])[A-Za-z0-9+/= \\t\\r\\n\\\\]{40,}"),
)

LONG_WORD = 32
SHORTEST_WORD = 19

FOREIGN_NAMES = (
    *(
        "kennwort",
        "contrase",
        "senha",
        "wachtwoord",
        "clave",
        "mdp",
        "parola",
        "adgangskode",
        "heslo",
        "salasana",
    ),
    *("lösenord", "jelszó", "şifre", "كلمة المرور", "كلمة السر", "schlüssel", "токен"),
    *(
        "пароль",
        "密码",
        "密碼",
        "口令",
        "密钥",
        "令牌",
        "パスワード",
        "비밀번호",
        "hasło",
        "κωδικός",
        "סיסמה",
        "mật khẩu",
    ),
)
"""What a password or a key is called where English is not spoken."""

ALIKE: dict[str, int] = {
    **dict(zip("авеіјкмнорсѕтухԁһӏАВЕІКМНОРСТУХЅЈ", b"abeijkmhopcstyxdhlABEIKMHOPCTYXSJ", strict=True)),
    **dict(zip("αεικνορτυχ", b"aeiknoptux", strict=True)),
    **dict.fromkeys("“”„‘’«»″", ord("`")),
    **{chr(wide): wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)},
    **dict.fromkeys("\u00a0\u202f\u205f\u3000", ord(" ")),
    **{chr(space): ord(" ") for space in range(0x2000, 0x200B)},
    **dict.fromkeys("│┃║", ord("|")),
}
"""What looks like a letter or a sign of ASCII, and which: somebody wrote `password` with one of them."""

INVISIBLE = "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
"""Nobody sees these, and a name or a token with one of them inside is read as it would be without."""

NEAR = (
    *("x-", "jwt", "hmac", "crypt", "cipher", "fernet", "aes.new", "secretkeyspec", "securitykey"),
    *("bot", "client", "stripe(", "github(", "openai(", "slack(", "twilio(", "mailgun(", "algolia"),
    *("parser(", "pat", "pepper", "salt", "seed", "sessid", "sessionid", "bearer", "privkey", "signkey"),
    *("digest(", "unseal", "oauth", "cookiesession", "user-secrets", "authtok", "sonar.login"),
)
"""Without one of these words near it, a random word is no secret unless its name says so."""

NAMES = (
    *(
        "key",
        "token",
        "pass",
        "pw",
        "psw",
        "psk",
        "cret",
        "cred",
        "auth",
        "cookie",
        "bearer ",
        "basic ",
        "sig=",
        "nature=",
        "login",
    ),
    *(
        "getconnection",
        "ldap",
        "smbclient",
        "rpcclient",
        "redis-cli",
        "zip -",
        "7z ",
        "doctl",
        "http -a",
        "xh -a",
    ),
    *("mc alias", "sudo -s", "-stdin", "salt", "bundle_", "identified ", "http-basic", "bundle config"),
    *(
        "sqlplus ",
        "securestring",
        "@tcp(",
        "kinit",
        "cryptsetup",
        "/user:",
        "munity",
        "<<<",
        "wrangler",
        " seed",
        "phrase",
    ),
    *(
        "net user ",
        "connect(",
        "connection(",
        "logon(",
        "_in(",
        "_on(",
        "signin(",
        "user(",
        "bind(",
        "bind_s(",
        "totp(",
        "pdo(",
    ),
    *("sqli(", "sequelize(", "usmuserdata(", "open(", "start(", "wifi", "driver(", "dial("),
    *("client(", "database(", "redis(", "ftp(", "btoa(", "b64", "e64_encode", "send ", "/rp ", "unseal "),
    *("kserv ", "sip:", "sips:", "tpd", "]:25", "]:465", "]:587", "ugfzc3dv", "connect ", " on >", "allkeys"),
    *FOREIGN_NAMES,
)
"""In small letters: without one of them nothing is a secret by its name."""

_HARMLESS = ("passed", "passes", "passing", "author", "tokens", "keyboard", "keybinding")
"""Words with such a name in them that name no secret, and are in every other record."""

PLACES = (
    *(
        "PRIVATE KEY",
        "OpenVPN Static key",
        "{SSHA",
        "Private-Lines:",
        "_live_",
        "_prod_",
        "_sandbox_",
        "whsec_",
        "fm1",
        "fm2_",
        "1//0",
        "eyJ",
    ),
    *("$2a$", "$2b$", "$2x$", "$2y$", "$1$", "$5$", "$6$", "$7$", "$y$", "$gy$", "$apr1$", "$argon2"),
    *(
        "webhook",
        "/hook/",
        "/hooks/",
        "4/0A",
        "pbkdf2",
        "SCRAM-SHA-",
        "hooks.slack.com",
        "hooks.zapier.com",
        "mnemonic",
        "phrase",
        "kty",
    ),
)
"""As they stand: where none of them is, nothing is a secret by a sign."""

_OPTIONS = (
    (" -u", ("curl", "http", "wget", "lftp", "transmission")),
    (" -U", ("curl",)),
    (" --proxy-user", ("curl",)),
    (" -n", ("transmission",)),
    (" -P", ("sqlcmd", "bcp ", "mosquitto")),
    (" -w", ("kadmin",)),
    (" -k", ("nuget",)),
    (" --user", ("etcdctl",)),
    ("creds", ("skopeo",)),
    (" login ", ("wandb", "cargo ", "vault", "snyk")),
    (" -p", ("skopeo", "crane", "buildah", "cf login", "nuget", "poetry", "rabbitmqadmin", "cypher-shell")),
    (" -p", ("cqlsh", "beeline", "hdbsql", "ncftp", "rdesktop", "psexec", "smbmap", "crackmapexec", "nxc ")),
    (" -p", ("netexec", "evil-winrm", "mariadb", "unrar", "rar ")),
    (" -b", ("curl",)),
    (" -N", ("ssh-keygen",)),
    (" -k", ("openssl",)),
    (" -P", ("ipmitool", "ssh-keygen")),
    (" -A", ("snmp",)),
    (" -X", ("snmp",)),
    ("/p:", ("freerdp",)),
    (" add_user ", ("rabbitmqctl",)),
    (" change_password ", ("rabbitmqctl",)),
    (" --user", ("curl", "http", "wget")),
    (" -p", ("mysql", "mongo", "twine", "7z")),
    (" -U", ("net ",)),
    (" -c", ("snmp",)),
    (" -H", ("crackmapexec", "nxc ", "netexec", "evil-winrm", "smbmap")),
    (" -hashes", (".py ", "impacket")),
    (" -h", ("openssl", "rar ")),
    (" -K", ("openssl",)),
    (" -ap", ("swaks",)),
    (" -y", ("nsupdate", "dig ")),
    (" -p", ("hydra", "bloodhound", "az sql", "snowsql", "usermod", "winrs")),
    (" -p", ("certutil", "influx", "steghide", "useradd", "isql")),
    (" -t", ("codecov", "influx")),
    (" -w", ("security add-",)),
    (" --encrypt", ("qpdf",)),
    (" --plaintext", ("caddy",)),
    ("mc alias", ("://",)),
)
"""With one of these programs; the others that take a password bear a name from above."""

_PREFIXES = tuple(prefix.encode() for _, prefixes, _ in WORD_RULES for prefix in prefixes.split(" "))
_LONG_MARKS = (b"atlasv1", b"Q~", b"AZDO", b"JQQJ9", b"NRAL", b"-us", b"_mmk")
_IN_WORDS = bytes(
    c if 48 <= c < 58 or 65 <= c < 91 or 97 <= c < 123 or c in b"_.~-" else 32 for c in range(256)
)
_CUT = "…"
_LONGEST_LOGIN = 240
_KEYS_IN_PATHS = ("infura.io", "alchemy.com", "quiknode", "/with/key/", "azurewebsites.net")


def may_hold_secret(text: str) -> bool:
    """Cheap, and never False where there is one: whether redaction has to look."""
    lowered = text.lower().replace("authori", "auth i")  # the header stays one
    if not text.isascii():
        text = text.translate(_ALIKE)
        lowered += text.lower()
    for word in _HARMLESS:
        lowered = lowered.replace(word, " ")
    if (
        any(name in lowered for name in NAMES)
        or "mnemonic" in lowered
        or any(place in text for place in PLACES)
    ):
        return True
    if any(option in text and any(one in lowered for one in programs) for option, programs in _OPTIONS):
        return True
    if (
        any(begin in lowered for begin in _ESCAPED_LETTERS)
        or _has_login_before_host(text)
        or _has_pgpass(text)
    ):
        return True
    return _has_login(text) or _has_cut_word(text) or _has_token(text, any(word in lowered for word in NEAR))


_ALIKE: dict[int, str] = {ord(one): chr(other) for one, other in ALIKE.items()} | dict.fromkeys(
    map(ord, INVISIBLE), ""
)
_ESCAPED_LETTERS = ("u004", "u005", "u006", "u007", "u00a", "u200", "u206", "ufeff", "%6", "%7", "&#")


def _has_login_before_host(text: str) -> bool:
    """`domain/user:password@host`, `user/password@host`, or what might be one."""
    at = text.find("@")
    while at >= 0:
        word = text[max(0, at - 160) : at].rpartition(" ")[2]
        if "/" in word and "//" not in word:
            return True
        at = text.find("@", at + 1)
    return False


def _has_pgpass(text: str) -> bool:
    at = text.find("43")
    while at >= 0:
        if ":" in text[max(0, at - 3) : at] and ":" in text[at + 3 : at + 5]:
            return True
        at = text.find("43", at + 1)
    return False


def _has_login(text: str) -> bool:
    """`://user:password@`, or what might be one."""
    at = text.find("://")
    while at >= 0:
        if "@" in text[at : at + _LONGEST_LOGIN] or any(
            one in text[at : at + _LONGEST_LOGIN] for one in _KEYS_IN_PATHS
        ):
            return True
        at = text.find("://", at + 3)
    return False


def _has_cut_word(text: str) -> bool:
    """Of a token that was cut the beginning stays. Our own cuts stand between spaces."""
    if "u2026" in text:
        return True
    at = text.find(_CUT)
    while at >= 0:
        if at and not text[at - 1].isspace():
            return True
        at = text.find(_CUT, at + 1)
    return False


def _has_token(text: str, is_near: bool) -> bool:
    """A long word that begins as a vendor's token does, or a part of one that does, or with a mark in it.

    `is_near`: or any with digits, since it may stand where only secrets do.
    """
    data = text.encode("ascii", "replace")
    return any(
        len(word) >= SHORTEST_WORD
        and (
            _begins_as_token(word)
            or _is_long_token(word, data)
            or (is_near and (word.translate(None, b"0123456789") != word or word.lower() != word))
        )
        for word in set(data.translate(_IN_WORDS).split())
    )


def _begins_as_token(word: bytes) -> bool:
    if _is_token(word, 0) or (word[0] in _ESCAPES and _is_token(word, 1)):
        return True
    return any(word[at] in b".~-" and _is_token(word, at + 1) for at in range(len(word)))


_ESCAPES = b"nrtbf"
"""In JSON text a line begins with a backslash and one of these."""


def _is_token(word: bytes, at: int) -> bool:
    if not word.startswith(_PREFIXES, at):
        return False
    # Three kinds whose prefixes begin many a word, by what is at a fixed place of them.
    if word.startswith((b"s.", b"b.", b"r."), at):
        return (len(word) >= at + 26 and word[at + 2 : at + 26].isalnum()) or word.startswith(
            _LONGER_PREFIXES, at
        )
    if word.startswith(b"pat", at):
        return word[at + 17 : at + 18] == b"." or word.startswith(_LONGER_PREFIXES, at)
    if word.startswith(_DISCORD, at):
        return b"." in word[at + 23 : at + 30] or word.startswith(_LONGER_PREFIXES, at)
    return True


_DISCORD = (b"MT", b"Mj", b"Mz", b"ND", b"NT", b"Nj", b"Nz", b"OD", b"OT")
_LONGER_PREFIXES = tuple(
    prefix for prefix in _PREFIXES if prefix not in (*_DISCORD, b"s.", b"b.", b"r.", b"pat")
)


def _is_long_token(word: bytes, data: bytes) -> bool:
    if len(word) < LONG_WORD:
        return False
    if any(mark in word for mark in _LONG_MARKS):
        return True
    starts = (word, word[1:])
    if b"." in word[32:34] or any(word + rest in data for rest in (b"+ACR", b"+AST", b":fx")):
        return True
    return any(
        one.startswith(b"0.")
        or (one[:1] in (b"5", b"K", b"L") and 51 <= len(one) <= 52)
        or (one[:1] in (b"1", b"2") and one[27:28] == b"_")
        or b":" + one in data
        for one in starts
    )
