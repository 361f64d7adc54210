// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "ExamSender",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "herald", path: "../../..", traits: [])],
    targets: [
        .executableTarget(
            name: "ExamSender",
            dependencies: [
                .product(name: "HeraldJSON", package: "herald"),
                .product(name: "HeraldModel", package: "herald"),
                .product(name: "HeraldProvider", package: "herald"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .treatAllWarnings(as: .error),
            ]
        )
    ]
)
