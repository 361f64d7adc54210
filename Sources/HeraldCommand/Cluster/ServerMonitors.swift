import AsyncHTTPClient
import Foundation
import HeraldCluster
import HeraldModel
import NIOCore
import NIOHTTP1

/// The monitoring ports of a cluster's NATS servers.
struct ServerMonitors: Sendable {
    let addresses: [URL]

    /// The time for one answer, and its size at most.
    private static let timeout = TimeAmount.seconds(3)
    private static let bodyBytes = 1 << 20

    /// Asks every server at the same time; nil for one that does not answer.
    func reports() async -> [(address: URL, report: ServerReport?)] {
        await withTaskGroup(of: (Int, ServerReport?).self) { group in
            for (index, address) in addresses.enumerated() {
                group.addTask { (index, await Self.report(of: address)) }
            }
            var reports = addresses.map { (address: $0, report: ServerReport?.none) }
            for await (index, report) in group { reports[index].report = report }
            return reports
        }
    }

    private static func report(of address: URL) async -> ServerReport? {
        let request = HTTPClientRequest(url: address.appendingPathComponent("varz").absoluteString)
        guard let answer = try? await HTTPClient.shared.execute(request, timeout: timeout), answer.status == .ok,
            let body = try? await answer.body.collect(upTo: bodyBytes)
        else { return nil }
        return try? ServerReport(varz: body.readableBytesView)
    }
}
