-- The role of the service and its database. Safe to run again: it then sets the password again.
--
--   ROOMBOOK_PASSWORD=... psql --no-psqlrc --set ON_ERROR_STOP=1 --file roles.sql     (as postgres)

\getenv password ROOMBOOK_PASSWORD

SELECT 'CREATE ROLE roombook' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'roombook') \gexec
-- It owns its database and nothing else.
ALTER ROLE roombook LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD :'password';

-- The limits that the service sets for its own sessions. PgBouncer does not pass them on, so the role
-- has them too.
ALTER ROLE roombook SET lock_timeout = '4s';
ALTER ROLE roombook SET statement_timeout = '30s';
ALTER ROLE roombook SET idle_in_transaction_session_timeout = '60s';
ALTER ROLE roombook SET jit = off;

SELECT 'CREATE DATABASE roombook OWNER roombook ENCODING ''UTF8'' TEMPLATE template0'
 WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'roombook') \gexec
-- Other roles of this server cannot read it.
REVOKE ALL ON DATABASE roombook FROM PUBLIC;
