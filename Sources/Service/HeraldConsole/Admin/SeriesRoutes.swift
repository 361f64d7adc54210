import Foundation
import HeraldWeb
import Hummingbird

/// The route of the time series.
struct SeriesRoutes: Sendable {
    let recorder: SeriesRecorder

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.get("series", ["range", "names"]) { request, _ in
            try WebReply.json(recorder.answer(try range(request), names: try names(request)))
        }
        routes.refuseOtherMethods()
    }

    /// `?range=15m|24h|30d`.
    private func range(_ request: Request) throws -> SeriesRange {
        guard let text = request.uri.queryParameters["range"] else { return .quarterHour }
        guard let range = SeriesRange(rawValue: String(text)) else {
            let ranges = SeriesRange.allCases.map(\.rawValue).joined(separator: ", ")
            throw AdminError(.badRequest, "range must be one of \(ranges)")
        }
        return range
    }

    /// `&names=NAME,NAME`: all series without it.
    private func names(_ request: Request) throws -> [String] {
        guard let text = request.uri.queryParameters["names"] else { return SeriesRecorder.names }
        let names = (text.removingPercentEncoding ?? String(text)).split(separator: ",").map(String.init)
        guard !names.isEmpty, names.allSatisfy(SeriesRecorder.names.contains) else {
            throw AdminError(
                .badRequest,
                "names must be names of series with commas between them: \(SeriesRecorder.names.joined(separator: ", "))"
            )
        }
        return names
    }
}
