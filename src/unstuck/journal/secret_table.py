"""What secrets look like, compiled from catalog/secrets.toml by `make rules`."""

# ruff: noqa: Q000
# fmt: off

SHAPES = (
    ('eyJ', '(?:(?<![\\w-])|(?<=\\\\[nrt])|(?<=[\\d\\[]m))eyJ[\\w-]{8,4096}\\.[\\w-]{8,8192}(?:\\.[\\w-]{4,8192}){1,3}', 0, False),
    ('://', '://[^\\s/:@"\'`]{0,256}:(?![{$<*\\[]|%[sd(])([^\\s/@"\'`]{1,256})@', 0, False),
    ('://', '://([^\\s/:@"\'`<>{}$]{16,256})(?::[^\\s/@"\'`]{0,256})?@', 0, True),
    ('-----BEGIN ', '-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-"\'`(){}]|-(?!----))*-----END (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----|(?:[^A-Za-z0-9+/="\'`]{1,12}(?:\\d{1,6}[^A-Za-z0-9+/="\'`]{1,6})?[A-Za-z0-9+/=]{24,})+)', 0, False),
    ('Private-Lines:', 'Private-Lines:[ \\t]{0,4}\\d{1,4}(?:\\r?\\n|\\\\r\\\\n|\\\\n)([A-Za-z0-9+/=]{1,128}(?:(?:\\r?\\n|\\\\r\\\\n|\\\\n)[A-Za-z0-9+/=]{1,128}(?!\\S))*)', 0, False),
    ('Private-MAC:', 'Private-MAC:[ \\t]{0,4}([0-9a-f]{32,128})', 0, False),
    ('earer ', 'earer[ \\t]{1,4}([\\w.~+/=-]{16,4096})', 0, True),
    ('BEARER ', 'BEARER[ \\t]{1,4}([\\w.~+/=-]{16,4096})', 0, True),
    (':5432:', '(?<=[\\w*]):5432:[^\\s:"\']{1,64}:[^\\s:"\']{1,64}:([^\\s:"\']{4,256})', 0, False),
    (':*:', '(?<=[\\w*]):\\*:[^\\s:"\']{1,64}:[^\\s:"\']{1,64}:([^\\s:"\']{4,256})', 0, False),
    ('\tTRUE\t', '\\tTRUE\\t/\\S{0,256}\\t(?:TRUE|FALSE)\\t\\d{1,12}\\t[^\\t\\n]{1,256}\\t([^\\s]{8,4096})', 0, False),
    ('\tFALSE\t', '\\tFALSE\\t/\\S{0,256}\\t(?:TRUE|FALSE)\\t\\d{1,12}\\t[^\\t\\n]{1,256}\\t([^\\s]{8,4096})', 0, False),
    ('AKIA', 'AKIA[A-Z0-9]{16}["\',:;|\\s]{1,8}([A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])', 0, True),
    ('Q~', '(?<![\\w~.-])[\\w~.-]{3}\\dQ~[\\w~.-]{31,34}', 4, False),
    ('.atlasv1.', '(?<![A-Za-z0-9])[A-Za-z0-9]{14}\\.atlasv1\\.[\\w-]{40,128}', 14, False),
    (':AA', '(?<!\\d)\\d{6,12}:AA[\\w-]{30,40}', 12, False),
    ('-us', '(?<![0-9a-f])[0-9a-f]{32}-us\\d{1,2}(?!\\w)', 32, False),
    ('hooks.slack', 'hooks\\.slack(?:-gov)?\\.com/((?:services|workflows|triggers)/[\\w/-]{16,200})', 0, False),
    ('/api/webhooks/', '/api/webhooks/(\\d{16,20}/[\\w-]{30,100})', 0, False),
    ('webhook.office.com/', 'webhook\\.office\\.com/(webhookb2/[\\w@/-]{40,300})', 0, False),
    ('outlook.office.com/webhook/', 'outlook\\.office\\.com/(webhook/[\\w@/-]{40,300})', 0, False),
    ('hooks.zapier.com/', 'hooks\\.zapier\\.com/(hooks/catch/[\\w/]{8,64})', 0, False),
    ('1//0', '(?<![\\w/])1//0[\\w-]{30,256}', 0, False),
    ('"d"', '"d"\\s{0,4}:\\s{0,4}"([\\w-]{40,1024})"', 0, True),
    ('-u', '(?<=[\\s"\'-])-u(?:ser)?[ =]["\']?[^\\s:"\'$]{1,128}:(?![$\\d{<]{1,9}["\'\\s])([^\\s"\'$]{4,256})', 0, False),
    ('mysql', 'mysql\\w{0,8}[ \\t](?:[^\\n]{0,160}?[ \\t])?-p["\']?(?![$\\d-])([^\\s"\']{6,256})', 0, False),
    ('sshpass', 'sshpass[ \\t]{1,4}-p[ ]?["\']?(?!\\$)([^\\s"\']{4,256})', 0, False),
    ('login ', 'login (?:[^\\n]{0,160}?[ \\t])?-p[ ]["\']?(?![$\\d-])([^\\s"\']{6,256})', 0, False),
    ('--', '--(?:[a-z0-9]{1,16}-){0,3}(?:password|passwd|passphrase|token|key|secret|auth) ["\']?(?=[^\\s"\']{0,64}\\d)([^\\s"\'$<-][^\\s"\']{5,256})', 0, False),
    ('login ', 'login[ \\t]{1,8}\\S{1,128}\\s{1,16}password[ \\t]{1,8}(\\S{4,256})', 0, False),
    ('requirepass ', 'requirepass ["\']?([^\\s"\']{4,256})', 0, False),
    ('redis-cli', 'redis-cli[ \\t](?:[^\\n]{0,160}?[ \\t])?-a[ ]["\']?(?!\\$)([^\\s"\']{6,256})', 0, False),
    ('-pass', '-pass(?:in|out)?[ ]["\']?pass:(?!\\$)([^\\s"\']{4,256})', 0, False),
    ('IDENTIFIED BY ', 'IDENTIFIED BY (?:PASSWORD )?["\']([^"\'\\n]{4,256})["\']', 0, False),
    ('identified by ', 'identified by (?:password )?["\']([^"\'\\n]{4,256})["\']', 0, False),
    ('ConvertTo-SecureString', 'ConvertTo-SecureString[ ](?:-\\w{1,16}[ ]){0,2}["\'](?!\\$)([^"\'\\n]{4,256})["\']', 0, False),
    ('NetworkCredential', 'NetworkCredential\\]?(?:::new)?\\(\\s{0,4}["\'][^"\'\\n]{0,128}["\'],\\s{0,4}["\'](?!\\$)([^"\'\\n]{4,256})["\']', 0, False),
    ('code=', '(?<=[?&])code=([^\\s&"\'#]{20,512})', 0, True),
    ('00D', '(?<!\\w)00D[A-Za-z0-9]{12,15}![\\w.]{60,256}', 0, False),
    ('nseal Key ', 'nseal Key \\d{1,2}:[ ]{1,4}([\\w+/=]{32,128})', 0, False),
    ('/v2/', '(?:(?<=\\.com)|(?<=api\\.io))/v2/([\\w-]{32})(?![\\w-])', 0, True),
    ('infura.io/', 'infura\\.io/(?:ws/)?v3/([0-9a-f]{32})', 0, False),
)

WORDS = (
    '[MNO][\\w-]{23,27}\\.[\\w-]{6}\\.[\\w-]{27,40}(?![\\w.-])',
    '[0-9a-f]{32}\\.(?=[A-Za-z0-9]{0,15}[A-Z])[A-Za-z0-9]{16}(?![\\w.-])',
)

TOKENS = {
    "upper": """
ABIA|16 ACCA|16 AKIA|16 ASIA|16 GOOG|20 LKIA|16 LSIA|16 SCW|17
""",
    "hex": """
1003.|20 AC|32 ES_|32 NRJS-|19 PRODUCTION_|20 SK|32 STAGE_|20 aks_|30 amzn1.application-oa2-client.|20
apikey_|20 bpk-|30 cr-|58 cs_|40 dkea|32 doo_v1_|20 dop_v1_|20 dor_v1_|20 dose|32 dsap|32 e2b_|30 fc-|32
glptt-|20 hxtp_|20 hxtw_|20 key-|32 org_|30 packagist_ack_|20 packagist_acs_|20 packagist_cut_|20
packagist_ort_|20 packagist_out_|20 packagist_uut_|20 pub|32 pul-|30 rootly_|20 rubygems_|20 s-s4t2af-|20
s-s4t2ud-|20 sbx_apikey_|20 sgp_local_|20 shippo_live_|20 shippo_test_|20 shpat_|20 shpca_|20 shppa_|20
shpss_|20 slk_|30 sntryu_|20 test_|35 u-s4t2af-|20 u-s4t2ud-|20
""",
    "alnum": """
4b1d|30 AGE-SECRET-KEY-1|20 AGE-SECRET-KEY-PQ-1|20 AIK_CI_|20 AIK_CLIENT_|20 AIK_SECRET_|20 AKCp|30 AKID|32
API-|26 ATBB|30 ATOA|20 AstraCS:|20 BBUS-|20 CLOJARS_|20 EAA|60 EAAC|30 EAAM|30 EXO|24 EZAK|30 EZTK|30
GOOG1E|20 IGQ|60 LTAI|17 NF-|32 NRAK-|20 PMAT-|20 STS.|16 aio_|28 ajkey_|20 ak-|22 ak_|24 api_org_|20
apify_api_|20 as-|22 bkua_|20 cal_|30 cal_live_|20 cfat_|20 cio|32 ck_|24 ck_production_|20 ck_staging_|20
cli_|16 cmVmd|59 cog_|30 cr_|25 csa_|30 csk-|30 db-|29 ddo_|30 ddp_|30 dk_prod_|20 dk_test_|20 dp.audit.|20
dp.ct.|20 dp.pt.|20 dp.sa.|20 dp.scim.|20 dryrunsec_|20 dub_|24 dvc_client_|10 dvc_mobile_|10 dvc_server_|10
eu1.|20 flb_live_|20 flb_test_|20 flp_|30 fw_|24 gho_|30 ghp_|30 ghr_|30 ghs_|30 ghu_|30 gsk_|30 hcaik_|20
hcalk_|20 hcbik_|20 hcxik_|20 hf_|30 ico-|30 ion_|30 jina_|20 key_|10 key_live_|16 key_test_|16 lin_api_|20
lin_oauth_|20 lin_wh_|20 llx-|30 m0-|24 mik_|25 mint_|20 mint_dsc_|20 mis_|30 mlsn.|20 msk_|30 na1.|20
napi_|20 nfp_|30 npm_|30 nyk_|30 odt_|30 os_v2_app_|20 os_v2_org_|20 oy2|43 pa_|32 pat_|30 permit_key_|20
pha_|30 phr_|30 phs_|30 pk_|30 pk_live_|20 pk_prod_|20 pk_test_|20 pnu_|30 pplx-|20 pts_|30 r8_|37
ramp_business_tok_|20 ramp_id_|20 ramp_sec_|20 rdme_|20 rk_live_|16 rk_prod_|10 rk_test_|16 rnd_|28 rpa_|30
rzp_live_|14 rzp_test_|14 salad_cloud_user_|20 samsara_api_|20 secret-|20 secret_|20 sess-|40 shptka_|20
shpua_|20 sk_|24 sk_live_|16 sk_production_|20 sk_staging_|20 sk_test_|16 skapi_cert_|20 sm_aat_|16 sm_pat_|16
sm_sat_|16 sqa_|30 sqp_|30 squ_|30 tgpak_|20 tgpat_|20 tkcapi_|20 tkcenv_|16 tkcorg_|16 tr_dev_|20 tr_pat_|20
tr_prod_|20 tr_stg_|20 ts_|28 tvly-|20 ucat_|20 unkey_|20 waka_|20 whsec_|16 xau_|30 xnd_development_|20
xnd_production_|20 xsmtpsib-|40
""",
    "word": """
1PRK|30 A3-|36 AGE-PLUGIN-|40 AGE-SECRET-KEY-|40 AIza|30 AKLT|30 APA91b|60 APP_USR-|16 AQ.Ab8R|20
AQAAANCMnd8BFdERjHo|20 AQVN|30 ATATT3x|20 ATCTT3x|20 BSA|24 CCDB1_|20 CCIPAT_|20 CCIPRJ_|20 CFPAT-|20
FLWSECK-|20 FLWSECK_TEST-|12 FwoGZXIvYXdz|60 GOCSPX-|20 GR1348941|20 HRKU-|20 IGQVJ|50 IQoJb3JpZ2lu|60 KEY|55
MINIMAX-|20 Mid-client-|10 Mid-server-|10 NRII-|20 NpmToken.|30 PMAK-|20 PRD-|28 RGAPI-|20 SB-Mid-client-|10
SB-Mid-server-|10 SBX-|28 SWMTKN-1-|20 WPL_AP0.|16 WPL_AP1.|16 access-development-|20 access-production-|20
access-sandbox-|20 ai71-api-|20 akab-|18 al-|43 amzn.mws.|20 api_live.|20 api_live_ca.|20 api_live_us.|20
api_sandbox.|20 bb_live_|20 bb_test_|20 bkaa_|20 bkaj_|20 bkar_|20 bkct_|20 bkpat_|20 bkps_|20 bkpt_|20 bu_|42
cfut_|20 cfxk_|20 cnvca|51 dapi|32 dckr_oat_|20 dckr_pat_|20 dj0y|30 endr+|16 figd_|20 fm1a_|40 fm1r_|40
fo1_|20 github_pat_|20 glagent-|20 glcbt-|20 gldt-|20 glffct-|20 glft-|20 glimt-|20 gloas-|20 glsa_|20
glsbt-|20 glsoat-|20 glwt-|20 gs_appsweep_|20 hcp.|30 hop_pat_|20 hvb.|20 hvr.|20 hvs.|20 isat_|20 lip_|16
live_|30 lsv2_pt_|20 lsv2_sk_|20 mdb_sa_sk_|20 mercury_production_|20 mercury_sandbox_|20
mergify_application_key_|20 mfa.|20 nrt_|30 ntn_|30 nvapi-|20 ory_ac_|20 ory_apikey_|20 ory_at_|20 ory_pat_|20
ory_rt_|20 ory_st_|20 ory_wak_|20 ovsxat_|20 ovsxp_|20 p8e-|30 pa-|43 pat-|30 pcsk_|20 pdl_live_apikey_|20
persona_production_|20 persona_sandbox_|20 phc_|30 phx_|30 pina_|20 pk-lf-|20 polar_at_|20 polar_oat_|20
polar_pat_|20 polar_rt_|20 prf_|20 ptk_|30 pypi-AgE|16 re_|33 rh-api-|20 sb_secret_|20 sbp_|30 sct_r_|20
sct_rs_|20 sct_rwa_|20 sct_w_|20 seam_live|20 seam_test2|20 sgp_|30 sha256~|20 signkey-|20 sk-|20 sk_car_|20
sk_dev_|20 sk_org_|20 sk_prod_|10 sntryi_|40 snyk_sat.|20 snyk_uat.|20 sq0atp-|20 sq0csp-|20 tgp_v1_|20
tid_|30 tk-us-|20 tskey-|20 tss_|20 tvly-dev-|20 tvly-prod-|20 vca_|30 vci_|30 vck_|30 vcp_|30 vcr_|30
vk1.a.|20 vtwn_|20 wandb_v1_|20 xaat-|20 xai-|40 xapp-|10 xapt-|20 xkeysib-|20 xoxa-|10 xoxb-|10 xoxc-|10
xoxd-|10 xoxe-|10 xoxe.xox|20 xoxo-|10 xoxp-|10 xoxr-|10 xoxs-|10 xwfp-|10 y0_|40 zpka_|20
""",
    "dotted": """
1000.|20 1001.|20 API_|30 SG.|30 VF.DM.|20 b10ck5.|20 dp.st.|20 dt0|77 dt0c01.|20 eyJrIjoi|40 glpat-|20
glrt-|20 hawk.|20 p.eyJ1I|20 pat|79 pat.|30 pinr_|20 pk.eyJ|40 sat.|30 sk.eyJ|40 tk.eyJ|40 v1.0-|20 wrka|30
wrka-eyJ|20 ya29.|20
""",
    "base64": """
ABSK|60 ABSKQmVkcm9ja0FQSUtleS|20 ATAT|30 ATATT3xFfGF0|20 ATCO|20 ATCTT3xFfGN0|20 AYNgAS|26 BBDC-|20 CAIS|60
EAAA|22 LS0tLS1CRUdJTiBEU0EgUFJJVkFURSBLRVktLS0t|20 LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0t|20
LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBL|40 LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUg|40
LS0tLS1CRUdJTiBQR1AgUFJJVkFURSBL|40 LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t|20
LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0t|20 SWMKEY-1-|20 ZXlK|60 apk_|30 apk_user_|20 cflt|30
configcat-sdk-1/|20 dnkey-|20 duffel_live_|20 duffel_test_|20 essu_|20 fio-u-|20 fm2_|40 glc_|30 ops_eyJ|20
ptr_|30 secret-live-|20 secret-test-|20 sk_live_a2V5Xz|20 sl.|130 sntrys_|20 tsec_|20
""",
    "wide": """
3MVG9|20 AAAAAAAAAAAAAAAAAAAA|40 access_token$production$|20 access_token$sandbox$|20 authress_|20
pscale_oauth_|20 pscale_pw_|20 pscale_tkn_|20 scauth_|20 t1.|88 tfp_|30 tmc1|30
""",
}
