import AsyncHTTPClient
package import Foundation
package import HeraldCluster
package import HeraldModel
import NIOCore
import NIOHTTP1

/// The monitoring ports of a cluster's NATS servers.
package struct ServerMonitors: Sendable {
    package let addresses: [URL]

    package init(addresses: [URL]) {
        self.addresses = addresses
    }

    /// The time for one answer, and its size at most.
    private static let timeout = TimeAmount.seconds(3)
    private static let bodyBytes = 1 << 20

    /// A server's answer, and the time of this machine when it came.
    package struct Answer: Sendable {
        package let report: ServerReport
        package let time: WallTime
        /// Nil if it does not say.
        package let routes: ServerRoutes?
    }

    /// Asks every server at the same time; nil for one that does not answer.
    package func answers(_ clock: any WallClock) async -> [(address: URL, answer: Answer?)] {
        await withTaskGroup(of: (Int, Answer?).self) { group in
            for (index, address) in addresses.enumerated() {
                group.addTask { (index, await Self.answer(of: address, clock)) }
            }
            var answers = addresses.map { (address: $0, answer: Answer?.none) }
            for await (index, answer) in group { answers[index].answer = answer }
            return answers
        }
    }

    private static func answer(of address: URL, _ clock: any WallClock) async -> Answer? {
        async let routes = body(of: address, "routez").flatMap { try? ServerRoutes(routez: $0.readableBytesView) }
        guard let report = await body(of: address, "varz").flatMap({ try? ServerReport(varz: $0.readableBytesView) })
        else { return nil }
        let time = clock.now()
        return Answer(report: report, time: time, routes: await routes)
    }

    private static func body(of address: URL, _ page: String) async -> ByteBuffer? {
        let request = HTTPClientRequest(url: address.appendingPathComponent(page).absoluteString)
        guard let answer = try? await HTTPClient.shared.execute(request, timeout: timeout), answer.status == .ok else {
            return nil
        }
        return try? await answer.body.collect(upTo: bodyBytes)
    }
}
