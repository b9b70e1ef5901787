import {
  FrameGeometrySourceBuilder,
  FrameGeometrySourceMode,
  MapLayerOptionsBuilder,
} from "@grafana/grafana-foundation-sdk/common";
import {
  ControlsOptionsBuilder,
  PanelBuilder as GeomapBuilder,
  MapCenterID,
  MapViewConfigBuilder,
} from "@grafana/grafana-foundation-sdk/geomap";
import { columns, configurePanel, type PanelText } from "./panel.ts";

/** The columns of the queries that a circle shows. */
interface Circles {
  /** A column with two-letter country codes. */
  readonly country: string;
  /** Name by column. The first sets the color, the second the size. */
  readonly values: Readonly<Record<string, string>>;
}

const SHAPE_OF_COUNTRIES = "public/maps/countries.geojson";
const PLACES_OF_COUNTRIES = "public/gazetteer/countries.json";

/** One circle per country. Map and coordinates come with Grafana, so no tile server is used. */
export const worldMap = (text: PanelText, { country, values }: Circles): GeomapBuilder => {
  const [color, size] = Object.values(values);
  return configurePanel(new GeomapBuilder(), text)
    .view(new MapViewConfigBuilder().id(MapCenterID.Coords).lat(30).lon(0).zoom(1))
    .controls(new ControlsOptionsBuilder().showZoom(true).mouseWheelZoom(false).showAttribution(false))
    .basemap(
      new MapLayerOptionsBuilder()
        .type("geojson")
        .name("Countries")
        .config({ src: SHAPE_OF_COUNTRIES, rules: [], style: { color: { fixed: "#6e7687" }, opacity: 0.3 } }),
    )
    .layers([
      new MapLayerOptionsBuilder()
        .type("markers")
        .name("Nodes")
        .tooltip(true)
        .location(
          new FrameGeometrySourceBuilder()
            .mode(FrameGeometrySourceMode.Lookup)
            .lookup(country)
            .gazetteer(PLACES_OF_COUNTRIES),
        )
        .config({
          showLegend: true,
          style: {
            color: { field: color, fixed: "green" },
            size: { field: size, fixed: 8, min: 6, max: 24 },
            opacity: 0.7,
            symbol: { mode: "fixed", fixed: "img/icons/marker/circle.svg" },
            text: { field: country, mode: "field", fixed: "" },
            textConfig: { fontSize: 10, offsetX: 0, offsetY: 0, textAlign: "center", textBaseline: "middle" },
          },
        }),
    ])
    .transformations(columns({ [country]: country, ...values }));
};
