// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioTLS = Target.Dependency.product(name: "NIOTLS", package: "swift-nio")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let x509 = Target.Dependency.product(name: "X509", package: "swift-certificates")
let asn1 = Target.Dependency.product(name: "SwiftASN1", package: "swift-asn1")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let coreMetrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let tracing = Target.Dependency.product(name: "Tracing", package: "swift-distributed-tracing")
let inMemoryTracing = Target.Dependency.product(name: "InMemoryTracing", package: "swift-distributed-tracing")
let metricsTestKit = Target.Dependency.product(name: "MetricsTestKit", package: "swift-metrics")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let grdbSQLite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore = Target.Dependency.product(name: "HummingbirdCore", package: "hummingbird")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let httpClient = Target.Dependency.product(name: "AsyncHTTPClient", package: "async-http-client")
let configuration = Target.Dependency.product(name: "Configuration", package: "swift-configuration")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

/// The service has it, and what stands in for it in benchmarks; libraries leave it to their users, and macOS has its own.
let allocator = Target.Dependency.target(name: "CAllocator", condition: .when(platforms: [.linux]))

/// A target of Herald's own; which target may name which is the import table of docs/architecture.md.
func herald(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

let package = Package(
    name: "herald",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "herald", targets: ["HeraldCommand"]),
        .library(name: "HeraldModel", targets: ["HeraldModel"]),
        .library(name: "HeraldProvider", targets: ["HeraldProvider"]),
        .library(name: "HeraldDevice", targets: ["HeraldDevice"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-asn1.git", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-certificates.git", from: "1.21.0"),
        .package(url: "https://github.com/apple/swift-configuration.git", from: "1.4.0", traits: [.defaults, "YAML"]),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0", traits: []),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.13.0"),
        // One minor version: HeraldDoor/SparseBuffers stands on an interface of NIO that it may change in the next.
        .package(url: "https://github.com/apple/swift-nio.git", .upToNextMinor(from: "2.101.0")),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.37.2"),
        .package(url: "https://github.com/groue/GRDB.swift.git", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.0"),
        .package(url: "https://github.com/jpsim/Yams.git", from: "6.2.0"),
        .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CNghttp2",
            pkgConfig: "libnghttp2",
            providers: [.apt(["libnghttp2-dev"]), .brew(["libnghttp2"])]
        ),
        .systemLibrary(name: "CLibpq", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),

        herald("HeraldModel", []),
        herald("HeraldWire", ["HeraldModel", nioCore]),
        herald("HeraldTrust", ["HeraldModel", x509, asn1, crypto, cryptoExtras]),
        herald("HeraldMailbox", ["HeraldModel", logging, metrics, coreMetrics]),
        herald(
            "HeraldDoor",
            ["HeraldModel", "HeraldTrust", nioCore, nioPosix, nioTLS, nioSSL, lifecycle, logging, coreMetrics]
        ),
        herald(
            "HeraldGateway",
            [
                "HeraldModel", "HeraldWire", "HeraldTrust", "HeraldMailbox", "HeraldDoor", "CNghttp2", nioCore, nioSSL,
                logging, metrics, coreMetrics,
            ]
        ),
        herald(
            "HeraldCourier",
            [
                "HeraldModel", "HeraldWire", "HeraldTrust", "HeraldMailbox", "HeraldDoor", nioCore, nioSSL, logging,
                metrics, coreMetrics,
            ]
        ),
        herald("HeraldStores", ["HeraldModel", "HeraldMailbox", grdb, grdbSQLite, logging]),
        herald("HeraldWeb", [hummingbird, hummingbirdCore, httpTypes, lifecycle, logging, nioCore]),
        herald(
            "HeraldConsole",
            ["HeraldModel", "HeraldMailbox", "HeraldWeb", hummingbird, logging, coreMetrics]
        ),
        herald(
            "HeraldActivation",
            [
                "HeraldModel", "HeraldTrust", "HeraldDoor", "HeraldWeb", hummingbird, hummingbirdCore, httpTypes,
                logging,
                coreMetrics, nioCore, nioPosix, nioSSL, nioTLS,
            ]
        ),
        herald(
            "HeraldProvider",
            [
                "HeraldModel", "HeraldWire", "HeraldTrust", "CNghttp2", crypto, logging, coreMetrics, nioCore,
                nioPosix, nioSSL, nioTLS, tracing,
            ]
        ),
        // Apart from HeraldProvider, so that who uses the library builds no database.
        herald(
            "HeraldRelay",
            [
                "HeraldModel", "HeraldProvider", "HeraldWeb", "CLibpq", grdb, grdbSQLite, httpClient, hummingbird,
                lifecycle, logging, metrics, coreMetrics, nioCore, nioHTTP1,
            ]
        ),
        .target(name: "CSpawn"),
        .target(name: "CAllocator", linkerSettings: [.linkedLibrary("jemalloc")]),
        herald(
            "HeraldDevice",
            [
                "HeraldModel", "HeraldWire", "HeraldTrust", "CSpawn", asn1, crypto, httpClient, nioCore, nioHTTP1,
                nioPosix,
                nioSSL, x509,
            ]
        ),
        .target(
            name: "HeraldScreen",
            dependencies: [
                "HeraldDevice", "HeraldModel", "HeraldWeb", hummingbird, httpTypes, logging, nioCore,
            ],
            // In the binary, so that there is nothing beside it.
            resources: [.embedInCode("Resources")],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "HeraldCommand",
            dependencies: [
                "HeraldModel", "HeraldWire", "HeraldTrust", "HeraldMailbox", "HeraldDoor", "HeraldGateway",
                "HeraldCourier",
                "HeraldStores", "HeraldConsole", "HeraldActivation", "HeraldProvider", "HeraldRelay",
                "HeraldDevice", "HeraldScreen", "HeraldWeb",
                argumentParser, configuration, yams, lifecycle, unixSignals, logging, metrics, coreMetrics, nioCore,
                nioHTTP1,
                nioPosix, httpClient, allocator,
            ],
            swiftSettings: settings
        ),

        .target(
            name: "HeraldTestSupport",
            dependencies: ["HeraldModel", "HeraldTrust", "HeraldMailbox", x509, asn1, crypto, logging],
            path: "Tests/HeraldTestSupport",
            swiftSettings: settings
        ),
        tests("HeraldModelTests", ["HeraldModel"]),
        tests("HeraldWireTests", ["HeraldWire", "HeraldModel", nioCore]),
        tests(
            "HeraldTrustTests",
            ["HeraldTrust", "HeraldModel", "HeraldTestSupport", x509, asn1, crypto, cryptoExtras]
        ),
        tests("HeraldMailboxTests", ["HeraldMailbox", "HeraldModel", "HeraldTestSupport", logging]),
        tests("HeraldDoorTests", ["HeraldDoor", "HeraldTrust", logging, nioCore, nioEmbedded, nioSSL]),
        tests(
            "HeraldGatewayTests",
            [
                "HeraldGateway", "HeraldDoor", "HeraldMailbox", "HeraldTrust", "HeraldModel", "HeraldWire",
                "HeraldTestSupport", "CNghttp2",
                nioCore, nioEmbedded, nioPosix, nioSSL, logging,
            ]
        ),
        tests(
            "HeraldCourierTests",
            [
                "HeraldCourier", "HeraldModel", "HeraldWire", "HeraldTrust", "HeraldMailbox", "HeraldDoor",
                "HeraldTestSupport", logging, nioCore, nioEmbedded, nioPosix, nioSSL,
            ]
        ),
        tests(
            "HeraldStoresTests",
            ["HeraldStores", "HeraldMailbox", "HeraldModel", "HeraldTestSupport", grdb, grdbSQLite, logging]
        ),
        tests("HeraldWebTests", ["HeraldWeb", hummingbird, logging, nioCore]),
        tests(
            "HeraldConsoleTests",
            [
                "HeraldConsole", "HeraldModel", "HeraldTestSupport", "HeraldWeb", httpClient, lifecycle, logging,
                coreMetrics,
                nioCore, nioHTTP1,
            ]
        ),
        tests(
            "HeraldActivationTests",
            ["HeraldActivation", "HeraldModel", "HeraldTrust", "HeraldTestSupport", nioCore]
        ),
        tests(
            "HeraldProviderTests",
            [
                "HeraldProvider", "HeraldDoor", "HeraldGateway", "HeraldMailbox", "HeraldModel", "HeraldTestSupport",
                "HeraldTrust", "HeraldWire", coreMetrics, crypto, inMemoryTracing, logging, metricsTestKit, nioCore,
                nioPosix, nioSSL, tracing,
            ]
        ),
        tests(
            "HeraldRelayTests",
            ["HeraldRelay", "HeraldModel", "HeraldProvider", "HeraldTestSupport", grdb, logging]
        ),
        tests(
            "HeraldDeviceTests",
            ["HeraldDevice", "HeraldModel", "HeraldTrust", "HeraldWire", "HeraldTestSupport", asn1, x509]
        ),
        tests(
            "HeraldScreenTests",
            [
                "HeraldScreen", "HeraldDevice", "HeraldModel", "HeraldWeb", httpClient, lifecycle, logging, nioCore,
                nioHTTP1,
            ]
        ),
        tests(
            "HeraldCommandTests",
            [
                "HeraldCommand", "HeraldConsole", "HeraldDevice", "HeraldGateway", "HeraldMailbox", "HeraldModel",
                "HeraldProvider", "HeraldRelay", "HeraldTestSupport", "HeraldTrust", "HeraldWeb",
                argumentParser, httpClient, logging, nioCore,
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)

// The benchmarks are targets of this package, because they use what is not public; they are here only when asked for, so
// that nobody who uses the libraries builds them.
if Context.environment["HERALD_BENCHMARKS"] != nil {
    func benchmark(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
        .executableTarget(
            name: name,
            dependencies: dependencies,
            path: "Benchmarks/\(name)",
            swiftSettings: settings
        )
    }

    // Preloaded into a server, not linked.
    package.products.append(.library(name: "SlowSync", type: .dynamic, targets: ["SlowSync"]))
    package.targets += [
        .target(name: "LoadKit", path: "Benchmarks/LoadKit", swiftSettings: settings),
        .target(name: "SlowSync", path: "Benchmarks/SlowSync"),
        benchmark(
            "CourierBench",
            [
                "LoadKit", "HeraldCourier", "HeraldDoor", "HeraldMailbox", "HeraldModel", "HeraldStores", "HeraldTrust",
                allocator, argumentParser, logging, nioCore, nioPosix,
            ]
        ),
        benchmark(
            "GatewayBench",
            [
                "HeraldDoor", "HeraldGateway", "HeraldMailbox", "HeraldModel", "HeraldTrust", allocator,
                argumentParser, crypto, logging, nioCore, nioPosix, nioSSL,
            ]
        ),
        benchmark("ClientBench", ["HeraldModel", "HeraldProvider", argumentParser]),
        benchmark("DeviceLoad", ["LoadKit", "HeraldWire", argumentParser, nioCore, nioPosix, nioSSL]),
        benchmark("StoreBench", ["HeraldStores", "HeraldMailbox", "HeraldModel", allocator, grdbSQLite, logging]),
    ]
}
