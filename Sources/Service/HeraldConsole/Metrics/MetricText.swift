/// Text exposition format 0.0.4 of Prometheus.
enum MetricText {
    /// Name of a metric or label: ASCII alphanumerics and `_`; other characters become `_`.
    static func name(_ text: String) -> String {
        let name = text.unicodeScalars.map { scalar -> Character in
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", "_": Character(scalar)
            default: "_"
            }
        }
        guard let first = name.first, first.isNumber == false else { return "_" + String(name) }
        return String(name)
    }

    /// Labels of a series, sorted by name: `listener="api",result="ok"`.
    static func labels(_ dimensions: [(String, String)]) -> String {
        dimensions
            .map { (name($0.0), $0.1) }
            .sorted { $0.0 < $1.0 }
            .map { "\($0.0)=\"\(escaped($0.1))\"" }
            .joined(separator: ",")
    }

    /// The lines before the series of a metric.
    static func header(_ name: String, _ kind: String) -> String {
        let help = MetricCatalog.help[name].map { "# HELP \(name) \($0)\n" } ?? ""
        return "\(help)# TYPE \(name) \(kind)\n"
    }

    /// A line of a series.
    static func line(_ name: String, _ labels: String, _ value: String) -> String {
        labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels)} \(value)\n"
    }

    /// A number in the spelling of Prometheus.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if value == value.rounded(), abs(value) < 1e15 { return String(Int64(value)) }
        return String(value)
    }

    private static func escaped(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
