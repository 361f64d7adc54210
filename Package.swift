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

/// A product that the client libraries do not use; without the trait, SwiftPM does not even fetch its package.
func beyondClients(_ name: String, _ package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: ["Command"]))
}

let lifecycle = beyondClients("ServiceLifecycle", "swift-service-lifecycle")
let unixSignals = beyondClients("UnixSignals", "swift-service-lifecycle")
let grdb = beyondClients("GRDB", "GRDB.swift")
let grdbSQLite = beyondClients("GRDBSQLite", "GRDB.swift")
let hummingbird = beyondClients("Hummingbird", "hummingbird")
let hummingbirdCore = beyondClients("HummingbirdCore", "hummingbird")
let httpTypes = beyondClients("HTTPTypes", "swift-http-types")
let httpClient = beyondClients("AsyncHTTPClient", "async-http-client")
let configuration = beyondClients("Configuration", "swift-configuration")
let yams = beyondClients("Yams", "Yams")
let argumentParser = beyondClients("ArgumentParser", "swift-argument-parser")

/// The service has it, and what stands in for it in benchmarks; libraries leave it to their users, and macOS has its own.
let allocator = Target.Dependency.target(name: "CAllocator", condition: .when(platforms: [.linux]))

/// The commit and its date, which `make` passes (scripts/version); the manifest's own view of git is out of date after a commit.
let commit = Context.environment["HERALD_COMMIT"] ?? "commit unknown"

/// The folders of `Sources`, one for each party.
enum Folder: String {
    case shared = "Shared"
    case service = "Service"
    case cluster = "Cluster"
    case provider = "Provider"
    case device = "Device"
    case command = "Command"
    case c = "C"

    func path(_ name: String) -> String { "Sources/\(rawValue)/\(name)" }

    init?(_ target: Target) {
        let folders = target.path?.split(separator: "/") ?? []
        guard folders.count == 3, folders[0] == "Sources" else { return nil }
        self.init(rawValue: String(folders[1]))
    }

    /// Whether `target` of this folder may import `imported` of another one: the table of folders in docs/architecture.md.
    func lets(_ target: String, import imported: String, of other: Folder) -> Bool {
        switch (self, other) {
        case (_, .shared), (_, .c), (.command, _): true
        case (.cluster, .service): imported == "HeraldMailbox"
        // The composition root: its console sends as a provider does, and checks payloads as a device does.
        case (.service, .cluster), (.service, .provider), (.service, .device): target == "HeraldService"
        case (.device, .service), (.device, .provider): target == "HeraldTesting"
        default: self == other
        }
    }
}

/// A target of Herald's own.
///
/// Resources are compiled in, so that there is nothing beside the binary.
func herald(
    _ folder: Folder,
    _ name: String,
    _ dependencies: [Target.Dependency],
    hasResources: Bool = false
) -> Target {
    .target(
        name: name,
        dependencies: dependencies,
        path: folder.path(name),
        resources: hasResources ? [.embedInCode("Resources")] : nil,
        swiftSettings: settings
    )
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

/// Everything that reads foreign bytes.
let fuzzed: [Target.Dependency] = [
    "HeraldIdentity", "HeraldJSON", "HeraldModel", "HeraldWire", "HeraldTrust", "HeraldMailbox", "HeraldListener",
    "HeraldGateway", "HeraldStores", "HeraldCluster", "HeraldNATS", "HeraldDevice", "HeraldPhone", "HeraldRelay",
    "HeraldService", "HeraldCommand", "HeraldWeb", crypto, nioCore, x509,
]

let package = Package(
    name: "herald",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "herald", targets: ["HeraldCommand"]),
        .library(name: "HeraldJSON", targets: ["HeraldJSON"]),
        .library(name: "HeraldModel", targets: ["HeraldModel"]),
        .library(name: "HeraldProvider", targets: ["HeraldProvider"]),
        .library(name: "HeraldDevice", targets: ["HeraldDevice"]),
        .library(name: "HeraldPhone", targets: ["HeraldPhone"]),
        .library(name: "HeraldTesting", targets: ["HeraldTesting"]),
    ],
    traits: [
        .trait(
            name: "Command",
            description: "The command herald: service, relay and devices. Without it: the client libraries"
        ),
        .default(enabledTraits: ["Command"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-asn1.git", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-certificates.git", from: "1.21.0"),
        .package(url: "https://github.com/apple/swift-configuration.git", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0", traits: []),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.0"),
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
            path: Folder.c.path("CNghttp2"),
            pkgConfig: "libnghttp2",
            providers: [.apt(["libnghttp2-dev"]), .brew(["libnghttp2"])]
        ),
        .systemLibrary(
            name: "CLibpq",
            path: Folder.c.path("CLibpq"),
            pkgConfig: "libpq",
            providers: [.apt(["libpq-dev"]), .brew(["libpq"])]
        ),

        herald(.shared, "HeraldJSON", []),
        herald(.shared, "HeraldModel", []),
        herald(.shared, "HeraldWire", ["HeraldModel", nioCore]),
        // What clients and service know of certificates, keys and TLS.
        herald(.shared, "HeraldIdentity", ["HeraldModel", x509, asn1, crypto, cryptoExtras]),
        // A client of NATS that knows nothing of Herald.
        herald(.cluster, "HeraldNATS", [nioCore, nioPosix, nioTLS, nioSSL, crypto, logging]),
        herald(
            .service,
            "HeraldTrust",
            ["HeraldIdentity", "HeraldJSON", "HeraldModel", x509, asn1, crypto, cryptoExtras]
        ),
        herald(.service, "HeraldMailbox", ["HeraldModel", logging, coreMetrics]),
        herald(
            .service,
            "HeraldListener",
            ["HeraldIdentity", "HeraldModel", "HeraldTrust", nioCore, nioPosix, nioTLS, nioSSL, logging, coreMetrics]
        ),
        herald(
            .service,
            "HeraldGateway",
            [
                "HeraldIdentity", "HeraldJSON", "HeraldModel", "HeraldWire", "HeraldTrust", "HeraldMailbox",
                "HeraldListener", "CNghttp2", nioCore, nioSSL, logging, coreMetrics,
            ]
        ),
        herald(
            .service,
            "HeraldCourier",
            [
                "HeraldIdentity", "HeraldJSON", "HeraldModel", "HeraldWire", "HeraldTrust", "HeraldMailbox",
                "HeraldListener", nioCore, nioSSL, logging, coreMetrics,
            ]
        ),
        herald(
            .service,
            "HeraldStores",
            ["HeraldIdentity", "HeraldModel", "HeraldMailbox", "HeraldTrust", "CPosix", grdb, grdbSQLite, logging]
        ),
        herald(
            .cluster,
            "HeraldCluster",
            ["HeraldModel", "HeraldMailbox", "HeraldNATS", crypto, cryptoExtras, logging, coreMetrics, nioCore]
        ),
        herald(
            .shared,
            "HeraldWeb",
            [
                "HeraldJSON", "HeraldModel", hummingbird, hummingbirdCore, httpTypes, lifecycle, logging, nioCore,
                nioHTTP1, nioSSL,
            ],
            hasResources: true
        ),
        herald(
            .service,
            "HeraldConsole",
            [
                "HeraldJSON", "HeraldModel", "HeraldMailbox", "HeraldWeb", crypto, hummingbird, httpTypes, logging,
                coreMetrics, nioCore,
            ],
            hasResources: true
        ),
        herald(
            .service,
            "HeraldActivation",
            [
                "HeraldIdentity", "HeraldModel", "HeraldTrust", "HeraldListener", "HeraldWeb", hummingbird,
                hummingbirdCore, httpTypes, logging, coreMetrics, nioCore, nioSSL, nioTLS,
            ]
        ),
        herald(
            .provider,
            "HeraldProvider",
            [
                "HeraldIdentity", "HeraldJSON", "HeraldModel", "HeraldWire", "CNghttp2", crypto, logging, coreMetrics,
                nioCore, nioPosix, nioSSL, nioTLS, tracing,
            ]
        ),
        // The composition root: the one module of the service that knows a cluster, too.
        herald(
            .service,
            "HeraldService",
            [
                "HeraldIdentity", "HeraldJSON", "HeraldModel", "HeraldWire", "HeraldTrust", "HeraldMailbox",
                "HeraldListener",
                "HeraldGateway", "HeraldCourier", "HeraldStores", "HeraldConsole", "HeraldActivation", "HeraldWeb",
                "HeraldCluster", "HeraldNATS", "HeraldProvider", "HeraldPhone", "CPosix", argumentParser, configuration,
                crypto, yams, httpTypes,
                lifecycle, unixSignals, logging, coreMetrics, nioCore, nioHTTP1, nioPosix, nioSSL, httpClient,
            ]
        ),
        // Apart from HeraldProvider, so that who uses the library builds no database.
        herald(
            .provider,
            "HeraldRelay",
            [
                "HeraldJSON", "HeraldModel", "HeraldProvider", "HeraldWeb", "CLibpq", grdb, grdbSQLite, httpClient,
                hummingbird, lifecycle, logging, metrics, coreMetrics, nioCore, nioHTTP1, nioSSL,
            ],
            hasResources: true
        ),
        .target(name: "CPosix", path: Folder.c.path("CPosix")),
        .target(name: "CSignals", path: Folder.c.path("CSignals")),
        .target(
            name: "CVersion",
            path: Folder.c.path("CVersion"),
            cSettings: [.define("HERALD_COMMIT", to: "\"\(commit)\"")]
        ),
        .target(name: "CAllocator", path: Folder.c.path("CAllocator"), linkerSettings: [.linkedLibrary("jemalloc")]),
        herald(
            .device,
            "HeraldDevice",
            [
                "HeraldIdentity", "HeraldModel", "HeraldWire", asn1, crypto, nioCore, nioHTTP1, nioPosix, nioSSL, x509,
            ]
        ),
        herald(.device, "HeraldPhone", ["HeraldJSON", "HeraldModel", "HeraldDevice", "CPosix", nioCore, nioPosix]),
        // It starts the service as a process, so that its users do not build the service.
        herald(
            .device,
            "HeraldTesting",
            ["HeraldModel", "HeraldDevice", "HeraldPhone", "CPosix", nioCore, nioHTTP1]
        ),
        herald(.device, "HeraldDesktop", ["HeraldModel", "HeraldPhone", nioCore, nioPosix]),
        herald(
            .device,
            "HeraldScreen",
            [
                "HeraldDevice", "HeraldJSON", "HeraldModel", "HeraldPhone", "HeraldWeb", hummingbird,
                httpTypes, lifecycle, logging,
            ],
            hasResources: true
        ),
        // A whole service in its process, against which senders are examined.
        herald(
            .command,
            "HeraldExam",
            [
                "HeraldGateway", "HeraldIdentity", "HeraldJSON", "HeraldListener", "HeraldMailbox", "HeraldModel",
                "HeraldService", "HeraldStores", "HeraldTrust", "CPosix", crypto, x509, lifecycle, logging, nioCore,
                nioHTTP1, httpClient,
            ]
        ),
        .executableTarget(
            name: "HeraldCommand",
            dependencies: [
                "HeraldActivation", "HeraldCluster", "HeraldConsole", "HeraldDesktop", "HeraldDevice", "HeraldExam",
                "HeraldIdentity", "HeraldJSON", "HeraldListener", "HeraldMailbox", "HeraldModel",
                "HeraldNATS", "HeraldPhone", "HeraldProvider", "HeraldRelay", "HeraldScreen", "HeraldService",
                "HeraldStores",
                "HeraldTrust", "HeraldWeb", "CSignals", "CVersion", argumentParser,
                configuration, yams, httpTypes, lifecycle, unixSignals, logging, coreMetrics, nioCore, nioHTTP1,
                httpClient, allocator,
            ],
            path: Folder.command.path("HeraldCommand"),
            swiftSettings: settings
        ),

        .target(
            name: "HeraldTestSupport",
            dependencies: [
                "HeraldIdentity", "HeraldModel", "HeraldTrust", "HeraldMailbox", "HeraldNATS", x509, asn1, crypto,
                logging,
                nioPosix,
            ],
            path: "Tests/HeraldTestSupport",
            swiftSettings: settings
        ),
        // Played by the tests, and as a program, which `make soak` builds for release.
        .executableTarget(
            name: "HeraldSimulation",
            dependencies: [
                "HeraldCluster", "HeraldMailbox", "HeraldModel", argumentParser, logging, nioCore,
            ],
            path: "Tests/HeraldSimulation",
            swiftSettings: settings
        ),
        tests("HeraldJSONTests", ["HeraldJSON"]),
        tests("HeraldModelTests", ["HeraldModel"]),
        tests("HeraldWireTests", ["HeraldWire", "HeraldModel", nioCore, nioEmbedded]),
        tests(
            "HeraldIdentityTests",
            ["HeraldIdentity", "HeraldTrust", "HeraldTestSupport", asn1, crypto, cryptoExtras, x509]
        ),
        tests(
            "HeraldTrustTests",
            ["HeraldIdentity", "HeraldTrust", "HeraldModel", "HeraldTestSupport", x509, asn1, crypto, cryptoExtras]
        ),
        tests("HeraldNATSTests", ["HeraldNATS", crypto, logging, nioCore, nioPosix]),
        tests("HeraldMailboxTests", ["HeraldMailbox", "HeraldModel", "HeraldTestSupport", logging]),
        tests(
            "HeraldListenerTests",
            ["HeraldIdentity", "HeraldListener", "HeraldTestSupport", logging, nioCore, nioEmbedded, nioPosix, nioSSL]
        ),
        tests(
            "HeraldGatewayTests",
            [
                "HeraldIdentity", "HeraldGateway", "HeraldListener", "HeraldMailbox", "HeraldTrust", "HeraldModel",
                "HeraldWire",
                "HeraldTestSupport", "CNghttp2", nioCore, nioEmbedded, nioPosix, nioSSL, logging,
            ]
        ),
        tests(
            "HeraldCourierTests",
            [
                "HeraldCourier", "HeraldModel", "HeraldWire", "HeraldTrust", "HeraldMailbox", "HeraldListener",
                "HeraldTestSupport", logging, nioCore, nioEmbedded,
            ]
        ),
        tests(
            "HeraldStoresTests",
            [
                "HeraldIdentity", "HeraldStores", "HeraldMailbox", "HeraldModel", "HeraldTrust", "HeraldTestSupport",
                grdb, grdbSQLite,
                logging,
            ]
        ),
        tests(
            "HeraldClusterTests",
            [
                "HeraldCluster", "HeraldMailbox", "HeraldModel", "HeraldNATS", "HeraldSimulation", "HeraldTestSupport",
                "HeraldTesting", crypto, logging, nioCore, nioPosix,
            ]
        ),
        tests(
            "HeraldWebTests",
            ["HeraldWeb", hummingbird, hummingbirdCore, httpTypes, logging, nioCore, nioEmbedded, nioHTTP1, nioPosix]
        ),
        tests(
            "HeraldConsoleTests",
            [
                "HeraldConsole", "HeraldJSON", "HeraldMailbox", "HeraldModel", "HeraldTestSupport", "HeraldWeb",
                httpClient,
                httpTypes, lifecycle, logging, coreMetrics, nioCore, nioHTTP1,
            ]
        ),
        tests(
            "HeraldActivationTests",
            ["HeraldActivation", "HeraldListener", "HeraldModel", "HeraldTestSupport", nioCore]
        ),
        tests(
            "HeraldProviderTests",
            [
                "HeraldIdentity", "HeraldProvider", "HeraldJSON", "HeraldListener", "HeraldGateway", "HeraldMailbox",
                "HeraldModel",
                "HeraldTestSupport", "HeraldTrust", "HeraldWire", coreMetrics, crypto, inMemoryTracing, logging,
                metricsTestKit, nioCore, nioPosix, nioSSL, tracing,
            ]
        ),
        tests(
            "HeraldRelayTests",
            ["HeraldRelay", "HeraldModel", "HeraldProvider", "HeraldTestSupport", grdb, logging]
        ),
        tests(
            "HeraldDeviceTests",
            [
                "HeraldDevice", "HeraldIdentity", "HeraldModel", "HeraldTestSupport", "HeraldTrust", "HeraldWire", asn1,
                crypto, nioCore, nioHTTP1, nioPosix, nioSSL, x509,
            ]
        ),
        tests("HeraldPhoneTests", ["HeraldPhone", "HeraldDevice", "HeraldJSON", "HeraldModel", nioCore, nioPosix]),
        tests("HeraldTestingTests", ["HeraldTesting", "HeraldModel", "HeraldPhone", "HeraldProvider"]),
        tests("HeraldExamTests", ["HeraldExam", "HeraldGateway", "HeraldMailbox", "HeraldModel"]),
        tests("HeraldDesktopTests", ["HeraldDesktop", "HeraldPhone", "HeraldModel"]),
        tests(
            "HeraldScreenTests",
            [
                "HeraldScreen", "HeraldDevice", "HeraldJSON", "HeraldModel", "HeraldPhone", "HeraldWeb", httpClient,
                lifecycle, logging, nioCore, nioHTTP1,
            ]
        ),
        tests(
            "HeraldServiceTests",
            [
                "HeraldActivation", "HeraldCluster", "HeraldCourier", "HeraldDevice", "HeraldGateway", "HeraldIdentity",
                "HeraldListener",
                "HeraldMailbox", "HeraldModel",
                "HeraldNATS", "HeraldProvider", "HeraldService", "HeraldStores", "HeraldTestSupport", "HeraldTrust",
                httpClient, lifecycle, logging, nioCore, nioHTTP1,
            ]
        ),
        tests(
            "HeraldCommandTests",
            [
                "HeraldActivation", "HeraldCluster", "HeraldCommand", "HeraldConsole", "HeraldCourier", "HeraldDevice",
                "HeraldGateway", "HeraldIdentity", "HeraldJSON", "HeraldListener", "HeraldMailbox", "HeraldModel",
                "HeraldNATS", "HeraldPhone", "HeraldProvider", "HeraldRelay", "HeraldService", "HeraldStores",
                "HeraldTestSupport",
                "HeraldTrust", "HeraldWeb", "HeraldWire", argumentParser, logging, nioCore, nioPosix,
            ]
        ),
        .testTarget(
            name: "HeraldFuzzTests",
            dependencies: fuzzed,
            exclude: ["CFuzzer", "Corpus", "Fuzzer"],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6]
)

let folders = Dictionary(
    uniqueKeysWithValues: package.targets.compactMap { target in Folder(target).map { (target.name, $0) } }
)
for target in package.targets {
    for dependency in target.dependencies {
        switch dependency {
        case .byNameItem(let name, condition: _), .targetItem(let name, condition: _):
            guard let folder = folders[target.name], let other = folders[name] else { continue }
            guard folder.lets(target.name, import: name, of: other) else {
                fatalError("\(target.name) may not import \(name): docs/architecture.md has the table of folders")
            }
        default: continue
        }
    }
}

// Targets for the development of Herald alone, so that users of the libraries do not build them. The benchmarks use what is
// not public. The examples are packages of their own; as targets here, they share the build of their dependencies.
if Context.environment["HERALD_DEVELOPMENT"] != nil {
    func benchmark(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
        .executableTarget(
            name: name,
            dependencies: dependencies,
            path: "Benchmarks/\(name)",
            swiftSettings: settings
        )
    }

    // It sees of Herald what any other package sees.
    func example(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
        .executableTarget(
            name: name,
            dependencies: dependencies,
            path: "Examples/\(name)/Sources/\(name)",
            resources: [.embedInCode("Resources")],
            packageAccess: false,
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
                "HeraldIdentity", "LoadKit", "HeraldCourier", "HeraldListener", "HeraldMailbox", "HeraldModel",
                "HeraldStores",
                "HeraldTrust", "HeraldWire", allocator, argumentParser, logging, nioCore, nioPosix,
            ]
        ),
        benchmark(
            "GatewayBench",
            [
                "HeraldIdentity", "HeraldListener", "HeraldGateway", "HeraldMailbox", "HeraldModel", "HeraldStores",
                "HeraldTrust",
                allocator, argumentParser, crypto, logging, nioCore, nioPosix,
            ]
        ),
        benchmark("ClientBench", ["HeraldModel", "HeraldProvider", argumentParser]),
        benchmark(
            "ClusterBench",
            [
                "LoadKit", "HeraldCluster", "HeraldMailbox", "HeraldModel", "HeraldNATS", allocator, argumentParser,
                crypto, logging, nioCore, nioPosix,
            ]
        ),
        benchmark("DeviceLoad", ["LoadKit", "HeraldWire", argumentParser, nioCore, nioPosix, nioSSL]),
        benchmark("LedgerBench", ["HeraldModel", "HeraldStores", "HeraldTrust", grdb]),
        benchmark("NATSBench", ["LoadKit", "HeraldNATS", allocator, argumentParser, logging, nioCore, nioPosix]),
        benchmark(
            "RingBench",
            [
                "LoadKit", "HeraldCluster", "HeraldModel", "HeraldNATS", allocator, argumentParser, logging, nioCore,
                nioPosix,
            ]
        ),
        benchmark("StoreBench", ["HeraldStores", "HeraldMailbox", "HeraldModel", allocator, grdbSQLite, logging]),
        example(
            "PushChat",
            [
                "HeraldModel", argumentParser, grdb, httpTypes, hummingbird, hummingbirdCore, logging, nioCore,
                lifecycle,
            ]
        ),
        .executableTarget(
            name: "ExamSender",
            dependencies: ["HeraldJSON", "HeraldModel", "HeraldProvider"],
            path: "Examples/Exam/HeraldProvider/Sources/ExamSender",
            packageAccess: false,
            swiftSettings: settings
        ),
        example(
            "KitchenTimer",
            [
                "HeraldJSON", "HeraldModel", "HeraldPhone", "HeraldProvider", argumentParser, httpClient, httpTypes,
                hummingbird, logging, nioCore, nioHTTP1, lifecycle,
            ]
        ),
    ]
}

// The fuzzer of `make fuzz`: the targets of HeraldFuzzTests with libFuzzer, whose library the variable names. Herald's own
// modules report their coverage. The command becomes a library, without its allocator: AddressSanitizer has its own.
if let fuzzer = Context.environment["HERALD_FUZZ"] {
    let coverage = [
        "-sanitize-coverage=edge,indirect-calls,trace-cmp,inline-8bit-counters,pc-table", "-enable-testing",
    ]
    let instrumented: [SwiftSetting] = settings + [.unsafeFlags(coverage)]
    package.products = []
    package.targets.removeAll { $0.type == .test || $0.name == "CAllocator" }
    for target in package.targets where target.swiftSettings != nil { target.swiftSettings = instrumented }
    if let index = package.targets.firstIndex(where: { $0.name == "HeraldCommand" }) {
        let dependencies = package.targets[index].dependencies.filter { dependency in
            if case .targetItem(name: "CAllocator", condition: _) = dependency { false } else { true }
        }
        let entry: [SwiftSetting] = [
            .unsafeFlags(["-Xfrontend", "-entry-point-function-name", "-Xfrontend", "herald_main"])
        ]
        package.targets[index] = .target(
            name: "HeraldCommand",
            dependencies: dependencies,
            path: Folder.command.path("HeraldCommand"),
            swiftSettings: instrumented + entry
        )
    }
    package.targets += [
        .target(name: "CFuzzer", path: "Tests/HeraldFuzzTests/CFuzzer"),
        .executableTarget(
            name: "HeraldFuzzer",
            dependencies: fuzzed + ["CFuzzer"],
            path: "Tests/HeraldFuzzTests",
            exclude: ["CFuzzer", "Corpus", "CorpusTests.swift"],
            sources: ["Fuzzer", "Targets"],
            swiftSettings: instrumented,
            linkerSettings: [.unsafeFlags([fuzzer]), .linkedLibrary("stdc++")]
        ),
    ]
}
