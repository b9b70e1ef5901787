-- The database role that Grafana uses. It reads what the daemons create, such as the views of the audit dashboard, and changes nothing.
CREATE ROLE grafana LOGIN PASSWORD 'simulation';
ALTER ROLE grafana SET search_path = proxywarden;
ALTER DEFAULT PRIVILEGES FOR ROLE proxywarden GRANT USAGE ON SCHEMAS TO grafana;
ALTER DEFAULT PRIVILEGES FOR ROLE proxywarden GRANT SELECT ON TABLES TO grafana;
