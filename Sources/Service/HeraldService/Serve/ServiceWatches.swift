import HeraldActivation
import HeraldCourier
import HeraldMailbox

/// What watches the trust folder and the clock of a service, and the activation listener, which the trust reaches too.
struct ServiceWatches: Sendable {
    let activation: Activation
    let trust: TrustWatch
    let clock: ClockWatch

    init(_ assembly: ServiceAssembly, devicePort: Int) {
        activation = assembly.activation(devicePort: devicePort)
        trust = TrustWatch(
            trust: assembly.trust,
            gateway: assembly.doors.gateway,
            binaryGateway: assembly.doors.binaryGateway,
            courier: assembly.doors.courier,
            activation: activation,
            console: assembly.doors.consoleTLS,
            alarm: RevocationAlarm(trust: assembly.trust, clock: assembly.clock, logger: assembly.logger),
            clock: assembly.clock,
            logger: assembly.logger
        )
        clock = ClockWatch(
            clock: assembly.clock,
            store: assembly.storage.store,
            logger: assembly.logger
        ) { [postOffice = assembly.delivery.postOffice, courier = assembly.doors.courier] in
            postOffice.releaseWithheld()
            courier.releaseWithheld()
        }
    }
}
