#!/bin/sh
# Sets up roombook on one Debian machine: PostgreSQL, the service, its scheduled commands and nginx.
# Run it as root in the repository, which must be /srv/roombook/app.
#
#   deploy/install.sh rooms.example.com stripe            set up; the sandbox charges nobody
#   deploy/install.sh --check rooms.example.com stripe    only say what is missing
#
# It changes only what is missing: run it again after an error, after changing settings, or after
# installing a new version. It never overwrites a file in /etc, and names those that differ. With
# --check, the exit status is 1 if something is missing.
set -eu

only_check=false
if [ "${1-}" = --check ]; then
    only_check=true
    shift
fi
host=${1-}
gateway=${2-}
case "$gateway" in
stripe | sandbox) ;;
*)
    echo "Usage: $0 [--check] HOST stripe|sandbox" >&2
    exit 2
    ;;
esac
home=/srv/roombook
app=$home/app
settings=/etc/roombook.env
site=/etc/nginx/conf.d/roombook.conf
packages="python3 python3-venv python3-pip make curl openssl postgresql nginx"
missing=0

if [ "$(id -u)" -ne 0 ] || [ "$(readlink -f "$0")" != "$app/deploy/install.sh" ]; then
    echo "Run $app/deploy/install.sh as root." >&2
    exit 2
fi
if [ ! -d /run/systemd/system ]; then
    echo "systemd does not run on this machine." >&2
    exit 2
fi
cd "$app"

# step DESCRIPTION FUNCTION: runs make_FUNCTION unless has_FUNCTION succeeds.
step() {
    if "has_$2" >/dev/null 2>&1; then
        return
    fi
    if $only_check; then
        echo "missing: $1"
        missing=1
        return
    fi
    echo "== $1"
    "make_$2"
    "has_$2" >/dev/null || {
        echo "This step failed: $1" >&2
        exit 1
    }
}

as_postgres() { runuser -u postgres -- "$@"; }
manage() { deploy/manage "$@"; }

has_packages() {
    for package in $packages; do
        dpkg-query --show --showformat '${db:Status-Status}' "$package" | grep -qx installed || return 1
    done
}
make_packages() {
    apt-get update --quiet
    # shellcheck disable=SC2086  # a list
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet $packages
}

has_user() { id roombook; }
make_user() { adduser --quiet --system --group --home $home --no-create-home roombook; }

has_environment() { [ .venv/.stamp -nt requirements.txt ]; }
make_environment() { make --no-print-directory env; }

# is_owned OWNER:GROUP:MODE FILE
is_owned() { [ "$(stat --dereference -c %U:%G:%a "$2")" = "$1" ]; }
has_folders() {
    is_owned roombook:www-data:2750 $home/media && is_owned roombook:roombook:750 $home/data
}
make_folders() {
    install -d -o roombook -g www-data -m 2750 $home/media
    install -d -o roombook -g roombook -m 750 $home/data
}

# database_setting HOST|PORT|PASSWORD: as the service reads it, which may be from a file of its own.
database_setting() {
    manage shell --no-imports --command \
        "from django.conf import settings; print(settings.DATABASES['default'].get('$1', ''))"
}
# Settings that already name other database servers: see docs/many-machines.md.
find_local_database() {
    if [ ! -e $settings ]; then
        echo true
        return
    fi
    address=$(database_setting HOST):$(database_setting PORT) || return 1
    case "$address" in
    127.0.0.1: | 127.0.0.1:5432) echo true ;;
    *) echo false ;;
    esac
}

# The newest PostgreSQL of this machine, and its folder of settings.
find_version() { find /usr/lib/postgresql -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -n | tail -1; }
find_conf() { echo "/etc/postgresql/$(find_version)/main"; }

has_cluster() { [ -f "$(find_conf)/postgresql.conf" ]; }
make_cluster() { pg_createcluster "$(find_version)" main -- --data-checksums >/dev/null; }

has_limits() { [ -e "$(find_conf)/conf.d/roombook.conf" ]; }
# Debian's own rules do not name the service.
has_access_rules() { grep -q roombook "$(find_conf)/pg_hba.conf"; }
# Debian includes the folder, unless its configuration of new clusters was changed.
has_include() { grep -q "^include_dir *= *'conf.d'" "$(find_conf)/postgresql.conf"; }
has_tuning() { has_include && has_limits && has_access_rules; }
make_tuning() {
    has_include || echo "include_dir = 'conf.d'" >>"$(find_conf)/postgresql.conf"
    has_limits ||
        install -D -m 644 deploy/postgresql/roombook.conf "$(find_conf)/conf.d/roombook.conf"
    has_access_rules || install --backup -o postgres -g postgres -m 640 \
        deploy/postgresql/pg_hba.conf "$(find_conf)/pg_hba.conf"
    if has_server 2>/dev/null; then pg_ctlcluster "$(find_version)" main restart; fi
}

has_server() { as_postgres psql --no-psqlrc --quiet --command 'SELECT 1'; }
make_server() { pg_ctlcluster "$(find_version)" main start; }

has_settings() { is_owned root:roombook:640 $settings; }
make_settings() {
    # An existing file has keys that exist nowhere else.
    [ -e $settings ] || write_settings
    chown root:roombook $settings
    chmod 640 $settings
}
write_settings() {
    random() { python3 -c 'import secrets; print(secrets.token_urlsafe(50))'; }
    password=$(random)
    install -m 600 /dev/null $settings.new
    # The rules are no argument, which everybody on the machine can read.
    sed --file /dev/stdin deploy/env.example >$settings.new <<END
s|^SECRET_KEY=.*|SECRET_KEY=$(random)|
s|^ALLOWED_HOSTS=.*|ALLOWED_HOSTS=$host|
s|^DATABASE_URL=.*|DATABASE_URL=postgres://roombook:$password@127.0.0.1:5432/roombook|
s|^#PAYMENT_GATEWAY=.*|PAYMENT_GATEWAY=$gateway|
s|^#MEDIA_ROOT=.*|MEDIA_ROOT=$home/media|
s|^#PUBLIC_URL=.*|PUBLIC_URL=https://$host|
END
    mv $settings.new $settings
}

# The service can sign in with the password of its settings.
has_role() { manage dbshell -- --no-psqlrc --quiet --command 'SELECT 1'; }
make_role() {
    ROOMBOOK_PASSWORD=$(database_setting PASSWORD) as_postgres \
        psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 <deploy/postgresql/roles.sql
}

# A wrong setting ends this with one line that names it.
has_valid_settings() { manage check --deploy; }
make_valid_settings() {
    echo "Correct $settings, then run this again:" >&2
    manage check --deploy || exit 1
}

has_tables() { manage migrate --check; }
make_tables() { STATEMENT_TIMEOUT=0 manage migrate --no-input --verbosity 0; }

# is_current FILE: no part of this version was installed after FILE was written.
is_current() {
    [ "$1" -nt .venv/.stamp ] && [ -z "$(find . \( -name .venv -o -name .git -o -name staticfiles \
        -o -name __pycache__ \) -prune -o ! -type d -newer "$1" -print -quit)" ]
}

has_static_files() { is_current staticfiles/staticfiles.json; }
make_static_files() {
    ENV_FILE=$settings .venv/bin/python manage.py collectstatic --no-input --verbosity 0
    # Collecting writes this file only if it changes.
    touch staticfiles/staticfiles.json
}

# The scheduled commands, and what reports their failures.
jobs="roombook-jobs.service roombook-job-failed.path"

# Files, and a link to one of them.
list_units() { (cd deploy/systemd && find . ! -type d | sort); }
has_units() {
    for unit in $(list_units); do
        [ -e "/etc/systemd/system/$unit" ] || return 1
    done
    for unit in roombook.service $jobs; do
        systemctl is-enabled "$unit" || return 1
    done
}
make_units() {
    # An existing service loads a new version below, without an interruption.
    start=start
    for unit in $(list_units); do
        [ -e "/etc/systemd/system/$unit" ] || {
            mkdir -p "$(dirname "/etc/systemd/system/$unit")"
            cp --no-dereference "deploy/systemd/$unit" "/etc/systemd/system/$unit"
            case "$unit" in ./roombook.service*) start=restart ;; esac
        }
    done
    systemctl daemon-reload
    # shellcheck disable=SC2086  # a list
    systemctl enable roombook.service $jobs
    # shellcheck disable=SC2086  # a list
    systemctl restart $jobs
    systemctl $start roombook.service
}

has_certificate() { [ -s /etc/nginx/tls/fullchain.pem ] && [ -s /etc/nginx/tls/privkey.pem ]; }
make_certificate() {
    install -d -m 750 -g www-data /etc/nginx/tls
    openssl req -x509 -newkey rsa:2048 -nodes -days 90 -subj "/CN=$host" -addext "subjectAltName=DNS:$host" \
        -keyout /etc/nginx/tls/privkey.pem -out /etc/nginx/tls/fullchain.pem 2>/dev/null
    echo "This certificate is signed by nobody. Replace the two files in /etc/nginx/tls by real ones."
}

site_of_this_host() {
    sed -e "s/rooms\.example\.com/$host/" -e 's/server web:8000/server 127.0.0.1:8000/' \
        deploy/nginx/roombook.conf
}
has_site() { [ -e $site ] && [ ! -e /etc/nginx/sites-enabled/default ]; }
make_site() {
    rm -f /etc/nginx/sites-enabled/default
    [ -e $site ] || site_of_this_host >$site
    nginx -t -q
    systemctl reload-or-restart nginx
}

# The master process writes this file when it has loaded the settings.
has_loaded() {
    is_current /run/roombook/gunicorn.pid && [ /run/roombook/gunicorn.pid -nt $settings ]
}
make_loaded() {
    systemctl restart roombook-jobs
    systemctl reload-or-restart roombook
}

has_answer() { curl --silent --fail --insecure --resolve "$host:443:127.0.0.1" "https://$host/healthz"; }
make_answer() {
    # systemd reports the service as started when it listens.
    systemctl reload-or-restart roombook nginx
}

# compare FILE INSTALLED: an administrator may have edited what is installed, so it stays.
compare() { [ ! -e "$2" ] || cmp --silent "$1" "$2" || echo "differs: $2"; }
compare_all() {
    if has_cluster 2>/dev/null && $is_local_database; then
        compare deploy/postgresql/roombook.conf "$(find_conf)/conf.d/roombook.conf"
        compare deploy/postgresql/pg_hba.conf "$(find_conf)/pg_hba.conf"
    fi
    for unit in $(list_units); do
        compare "deploy/systemd/$unit" "/etc/systemd/system/${unit#./}"
    done
    site_of_this_host | compare - $site
}

step "Debian packages: $packages" packages
step "the system user roombook" user
step "the Python environment in $app/.venv" environment
step "the folders of pictures and of SQLite, $home/media and $home/data" folders
step "the settings of the service, $settings" settings
# Settings that cannot be read are the next thing to correct.
is_local_database=$(find_local_database) || is_local_database=false
if $is_local_database; then
    step "a PostgreSQL cluster" cluster
    step "the settings of PostgreSQL" tuning
    step "a running PostgreSQL" server
    step "the role and the database of the service" role
fi
step "valid settings in $settings" valid_settings
step "the tables of this version" tables
step "the static files of this version" static_files
step "the units of systemd: the service and its scheduled commands" units
step "a TLS certificate in /etc/nginx/tls" certificate
step "the site of nginx" site
step "a service that has loaded these settings and this version" loaded
step "an answer of https://$host/healthz" answer
compare_all
[ $missing -eq 0 ] || exit 1
$only_check || echo "Done. Create the first administrator: $app/deploy/manage createsuperuser"
