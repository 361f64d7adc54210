import HeraldConsole
import HeraldGateway
import HeraldTrust

extension ServiceAdministration {
    var drills: [DrillEntry] { assembly.drillOperations.entries }

    func startDrill(_ request: DrillRequest) throws -> DrillEntry {
        try assembly.drillOperations.start(request)
    }

    func stopDrill(_ id: Int) throws -> DrillEntry {
        try assembly.drillOperations.stop(id)
    }

    func stopDrills() -> [DrillEntry] {
        assembly.drills.stopAll().map { DrillEntry($0) }
    }
}

extension ServiceAssembly {
    var drillOperations: DrillOperations { DrillOperations(desk: drills, seal: trust.seal) }
}
