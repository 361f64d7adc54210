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

    /// A server's answer, and the time of this machine when it came.
    struct Answer: Sendable {
        let report: ServerReport
        let time: WallTime
    }

    /// Asks every server at the same time; nil for one that does not answer.
    func answers(_ clock: any WallClock) async -> [(address: URL, answer: Answer?)] {
        await withTaskGroup(of: (Int, Answer?).self) { group in
            for (index, address) in addresses.enumerated() {
                group.addTask { (index, await Self.report(of: address).map { Answer(report: $0, time: clock.now()) }) }
            }
            var answers = addresses.map { (address: $0, answer: Answer?.none) }
            for await (index, answer) in group { answers[index].answer = answer }
            return answers
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
