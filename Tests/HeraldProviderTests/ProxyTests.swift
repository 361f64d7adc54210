import Foundation
import HeraldModel
import HeraldTestSupport
import Logging
import NIOCore
import NIOPosix
import Testing

@testable import HeraldProvider

/// The HTTP proxy between a provider and the service.
struct ProxyTests {
    private static func tunnel(_ text: String) throws -> ProviderProxy.Tunnel {
        guard case .tunnel(let tunnel) = try ProviderProxy(text).kind else { throw ChannelError.eof }
        return tunnel
    }

    @Test func `addresses are read`() throws {
        #expect(
            try Self.tunnel("http://proxy:3128")
                == .init(proxy: HostPort(host: "proxy", port: 3128), authorization: nil)
        )
        #expect(try Self.tunnel("http://proxy").proxy == HostPort(host: "proxy", port: 80))
        #expect(try Self.tunnel("proxy:8080/").proxy == HostPort(host: "proxy", port: 8080))
        #expect(try Self.tunnel("HTTP://[::1]:8080").proxy == HostPort(host: "::1", port: 8080))
        let secret = try Self.tunnel("http://ann:s%40cr%2Fet@proxy:3128")
        #expect(secret.authorization == "Basic " + Data("ann:s@cr/et".utf8).base64EncodedString())
        let proxy = try ProviderProxy("http://ann:secret@[::1]:3128")
        #expect("\(proxy)" == "http://[::1]:3128" && "\(ProviderProxy.direct)" == "none")
        for none in ["none", "NONE", "None"] { #expect(try ProviderProxy(none) == .direct) }
    }

    @Test(arguments: [
        "", "https://proxy:1", "socks5://ann:secret@proxy:1", "http://", "http://ann:sec/ret@proxy:1", "http://proxy:0",
        "http://proxy:70000", "http://ann:secret@proxy/path", "http://ann:secret@proxy?x", "http://ann:se%0Acret@proxy",
        "http://ann:secret @proxy",
    ])
    func `others are refused unseen`(_ text: String) {
        do {
            _ = try ProviderProxy(text)
            Issue.record("read")
        } catch let error as ProviderError {
            #expect(error.code == .badProxy)
            #expect(!error.message.contains("cret") && !error.message.contains("ann:"))
        } catch {
            Issue.record("\(error)")
        }
    }

    /// The list, the host, and whether the way is direct: measured with curl 7.88, but for the loopback and networks.
    private static let exceptions: [(String, String, Bool)] = [
        ("", "api.push.apple.com", false), ("*", "api.push.apple.com", true), ("", "localhost", true),
        ("", "sandbox.localhost", true), ("", "127.0.0.9", true), ("", "::1", true), ("", "10.0.0.1", false),
        ("example.com", "push.example.com", true), (".example.com", "push.example.com", true),
        ("*.example.com", "push.example.com", false), ("example.com", "example.com", true),
        ("example.com.", "push.example.com", true), (".example.com.", "push.example.com", true),
        ("example.com", "push.example.com.", true), ("..example.com", "push.example.com", false),
        ("example.com..", "push.example.com", false), (".", "push.example.com.", false), ("", "localhost.", true),
        ("a\tb.example.com", "push.b.example.com", true), ("a,*", "push.example.com", false),
        ("example.com", "badexample.com", false), ("a, EXAMPLE.com ,b", "Push.Example.Com", true),
        ("example.com:2197", "push.example.com", false), ("example.com:443", "push.example.com", false),
        ("10.0.0.0/8", "10.9.9.9", true), ("10.0.0.0/8", "11.0.0.1", false), ("10.0.0.0/33", "10.0.0.0", false),
        ("10.0.0.1", "10.0.0.1", true), ("10.0.0.1:2197", "10.0.0.1", false), ("10.0.0.1.", "10.0.0.1", false),
        ("0.1", "10.0.0.1", false),
        ("fd00::/7", "fd12::1", true), ("[fd00::1]", "fd00::1", false), ("[fd00::1]:2197", "fd00::1", false),
        ("fd00::1", "fd00:0::1", true),
        ("0.0.0.0/0", "192.0.2.1", true), ("::/0", "192.0.2.1", false), ("/,:,[", "a", false),
    ]

    @Test(arguments: exceptions.indices)
    func `exceptions are those of others`(_ index: Int) throws {
        let (list, host, isDirect) = Self.exceptions[index]
        let variables = ["https_proxy": "http://proxy:1", "no_proxy": list]
        let tunnel = try ProviderProxy.environment.tunnel(to: HostPort(host: host, port: 2197), variables: variables)
        #expect((tunnel == nil) == isDirect, "\(list) \(host)")
    }

    @Test func `the environment names a proxy in either case`() throws {
        let apple = HostPort(host: "api.push.apple.com", port: 443)
        func way(_ variables: [String: String]) throws -> String? {
            try ProviderProxy.environment.tunnel(to: apple, variables: variables)?.proxy.description
        }
        #expect(try way([:]) == nil && way(["https_proxy": "", "http_proxy": "http://a:1"]) == nil)
        #expect(try way(["HTTPS_PROXY": "http://a:1"]) == "a:1")
        #expect(try way(["HTTPS_PROXY": "http://a:1", "https_proxy": "http://b:1"]) == "b:1")
        #expect(try way(["HTTPS_PROXY": "http://a:1", "NO_PROXY": "apple.com"]) == nil)
        #expect(throws: ProviderError(.badProxy, "")) { try way(["HTTPS_PROXY": "socks5://a:1"]) }
        #expect(try ProviderProxy.direct.tunnel(to: apple, variables: ["HTTPS_PROXY": "http://a:1"]) == nil)
    }

    // MARK: - What a proxy answers

    /// Answers each connection's request with a text.
    private final class Answerer: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let text: String
        init(_ text: String) { self.text = text }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
            if text.isEmpty { context.close(promise: nil) }
        }
    }

    private static let answers: [(String, ProviderError.Code, String)] = [
        (
            "HTTP/1.1 407 Authentication\r\nproxy-authenticate: Basic realm=x\r\n\r\n", .badProxy,
            "refuses the user and password"
        ),
        ("HTTP/1.1 407 Authentication\r\nProxy-Authenticate: NTLM\r\n\r\n", .badProxy, "another kind of credentials"),
        ("HTTP/1.0 403 Filtered\r\n\r\n", .badProxy, "refuses a tunnel to push.test:2197 (403)"),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 502 Bad Gateway\r\n\r\n", .unreachable, "it answers 502"),
        ("SSH-2.0-x\r\n", .badProxy, "does not answer as an HTTP proxy does"),
        ("HTTP/2 200\r\n\r\n", .badProxy, "does not answer as an HTTP proxy does"),
        ("HTTP/1.1 2e2 OK\r\n\r\n", .badProxy, "does not answer as an HTTP proxy does"),
        (String(repeating: "HTTP/1.1 200 OK\r\nx: y", count: 1000), .badProxy, "does not answer as an HTTP proxy does"),
        ("", .unreachable, "closed the connection without an answer"),
    ]

    @Test(arguments: answers.indices)
    func `a proxy that makes no tunnel is named`(_ index: Int) async throws {
        let (answer, code, words) = Self.answers[index]
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Answerer(answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        // No key is needed: TLS never begins.
        var configuration = ProviderConfiguration(
            host: "push.test",
            port: 2197,
            credential: .key(pem: [], id: "", team: "")
        )
        configuration.timeout = .patience
        configuration.proxy = try ProviderProxy("http://ann:secret@127.0.0.1:\(port)")
        let connector = try Connector(configuration)
        do {
            try await connector.open { _ in }.get()
            Issue.record("there is a tunnel")
        } catch let error as ProviderError {
            #expect(error.code == code && error.message.contains(words), "\(error)")
            #expect(error.message.contains("the proxy 127.0.0.1:\(port)") && !error.message.contains("secret"))
        }
        try await server.close()
    }

    @Test func `a proxy that is not there is named`() async throws {
        var configuration = ProviderConfiguration(
            host: "push.test",
            port: 2197,
            credential: .key(pem: [], id: "", team: "")
        )
        configuration.timeout = .patience
        configuration.proxy = try ProviderProxy("http://127.0.0.1:1")
        let connector = try Connector(configuration)
        let error = await #expect(throws: ProviderError.self) { try await connector.open { _ in }.get() }
        #expect(error?.message.contains("cannot reach the proxy 127.0.0.1:1") == true)
    }

    @Test func `an invalid host gets no field of its own`() async throws {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let host = "push.test\r\nx: y"
        var configuration = ProviderConfiguration(host: host, port: 1, credential: .key(pem: [], id: "", team: ""))
        configuration.timeout = .patience
        configuration.proxy = try ProviderProxy("http://127.0.0.1:\(port)")
        let connector = try Connector(configuration)
        await #expect(throws: ProviderError(.badRequest, "")) { try await connector.open { _ in }.get() }
        try await server.close()
    }
}
