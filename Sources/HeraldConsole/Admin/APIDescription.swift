/// The console's requests in OpenAPI 3.1, as `/openapi.yaml` serves them; the same text is in the manual.
enum APIDescription {
    static let yaml = #"""
        openapi: 3.1.0
        info:
          title: Herald's console
          version: "1"
          description: |
            What operators see and do: health, metrics, and the admin API under `/v1`. The console listens on port 2190 of the
            machine itself unless told otherwise. The same requests are taken by the Unix socket `run/control.sock` of the data
            folder, where the file system says who may, and no token is asked for.

            Moments are texts in UTC with milliseconds. Of a member that is not there, nothing is known.
        servers:
          - url: http://127.0.0.1:2190
        security:
          - token: []
        tags:
          - name: health
          - name: service
          - name: journal
          - name: trust
          - name: clock
        paths:
          /openapi.yaml:
            get:
              tags: [service]
              operationId: description
              summary: This description.
              security: []
              responses:
                "200":
                  description: OpenAPI 3.1.
                  content:
                    application/yaml:
                      schema: {type: string}
          /health:
            get:
              tags: [health]
              operationId: health
              summary: Whether the service does its work.
              security: []
              responses:
                "200": {$ref: "#/components/responses/Health"}
                "503": {$ref: "#/components/responses/Health"}
          /health/ready:
            get:
              tags: [health]
              operationId: ready
              summary: Whether the service does its work; the same as `/health`.
              security: []
              responses:
                "200": {$ref: "#/components/responses/Health"}
                "503": {$ref: "#/components/responses/Health"}
          /health/live:
            get:
              tags: [health]
              operationId: live
              summary: Whether the process runs.
              security: []
              responses:
                "200":
                  description: It does.
                  content:
                    application/json:
                      schema:
                        type: object
                        required: [status]
                        properties:
                          status: {const: live}
                        additionalProperties: false
          /metrics:
            get:
              tags: [health]
              operationId: metrics
              summary: All metrics, for Prometheus (text exposition format 0.0.4).
              security: []
              responses:
                "200":
                  description: None names a device, a token or a topic.
                  content:
                    text/plain:
                      schema: {type: string}
          /v1/status:
            get:
              tags: [service]
              operationId: status
              summary: The service at a glance.
              responses:
                "200": {$ref: "#/components/responses/Status"}
                "401": {$ref: "#/components/responses/Failure"}
          /v1/journal:
            get:
              tags: [journal]
              operationId: journal
              summary: What became of notifications, oldest line first; the newest are kept if there are more than `limit`.
              description: Ask by exactly one of `notification`, `device` and `topic`.
              parameters:
                - name: notification
                  in: query
                  description: An `apns-id` or `apns-unique-id`.
                  schema: {type: string, format: uuid}
                - name: device
                  in: query
                  description: A device's identifier.
                  schema: {type: string}
                - name: topic
                  in: query
                  description: A topic, in both environments.
                  schema: {type: string}
                - name: limit
                  in: query
                  schema: {type: integer, minimum: 1, maximum: 10000, default: 1000}
              responses:
                "200":
                  description: The lines.
                  content:
                    application/json:
                      schema:
                        type: array
                        items: {$ref: "#/components/schemas/JournalLine"}
                "400": {$ref: "#/components/responses/Failure"}
                "401": {$ref: "#/components/responses/Failure"}
          /v1/channels:
            get:
              tags: [service]
              operationId: channels
              summary: Broadcast channels, what they are and what has been sent to them.
              parameters:
                - name: topic
                  in: query
                  description: A bundle identifier, in both environments; without it, channels of all apps.
                  schema: {type: string}
                - name: limit
                  in: query
                  schema: {type: integer, minimum: 1, maximum: 10000, default: 1000}
              responses:
                "200":
                  description: The channels; those of one app oldest first.
                  content:
                    application/json:
                      schema:
                        type: array
                        items: {$ref: "#/components/schemas/Channel"}
                "400": {$ref: "#/components/responses/Failure"}
                "401": {$ref: "#/components/responses/Failure"}
          /v1/credentials:
            get:
              tags: [trust]
              operationId: credentials
              summary: The certificates and keys of providers, revoked ones too.
              responses:
                "200":
                  description: The credentials, oldest first.
                  content:
                    application/json:
                      schema:
                        type: array
                        items: {$ref: "#/components/schemas/Credential"}
                "401": {$ref: "#/components/responses/Failure"}
          /v1/credentials/{id}/revoke:
            parameters:
              - {$ref: "#/components/parameters/ID"}
            post:
              tags: [trust]
              operationId: revokeCredential
              summary: Ends a credential, for ever; in effect on open connections when the answer comes.
              responses:
                "200":
                  description: The credential.
                  content:
                    application/json:
                      schema: {$ref: "#/components/schemas/Credential"}
                "401": {$ref: "#/components/responses/Failure"}
                "404": {$ref: "#/components/responses/Failure"}
                "409": {$ref: "#/components/responses/Failure"}
          /v1/devices:
            get:
              tags: [trust]
              operationId: devices
              summary: The devices that were enrolled, revoked ones too.
              responses:
                "200":
                  description: The devices, oldest first.
                  content:
                    application/json:
                      schema:
                        type: array
                        items: {$ref: "#/components/schemas/Device"}
                "401": {$ref: "#/components/responses/Failure"}
          /v1/devices/{id}/revoke:
            parameters:
              - {$ref: "#/components/parameters/ID"}
            post:
              tags: [trust]
              operationId: revokeDevice
              summary: Ends a device's certificate, for ever; its connection is closed when the answer comes.
              responses:
                "200":
                  description: The device.
                  content:
                    application/json:
                      schema: {$ref: "#/components/schemas/Device"}
                "401": {$ref: "#/components/responses/Failure"}
                "404": {$ref: "#/components/responses/Failure"}
                "409": {$ref: "#/components/responses/Failure"}
          /v1/trust/reload:
            post:
              tags: [trust]
              operationId: reloadTrust
              summary: Has the trust folder read again, now.
              responses:
                "200": {$ref: "#/components/responses/Status"}
                "401": {$ref: "#/components/responses/Failure"}
          /v1/clock:
            get:
              tags: [clock]
              operationId: clock
              summary: The service's time.
              responses:
                "200": {$ref: "#/components/responses/Clock"}
                "401": {$ref: "#/components/responses/Failure"}
          /v1/clock/advance:
            post:
              tags: [clock]
              operationId: advanceClock
              summary: Moves the service's time; only with `--clock`, for tests.
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [seconds]
                      properties:
                        seconds:
                          type: number
                          minimum: -3155760000
                          maximum: 3155760000
                          description: With a fraction if need be; negative to move it back.
              responses:
                "200": {$ref: "#/components/responses/Clock"}
                "400": {$ref: "#/components/responses/Failure"}
                "401": {$ref: "#/components/responses/Failure"}
                "409": {$ref: "#/components/responses/Failure"}
                "413": {$ref: "#/components/responses/Failure"}
        components:
          securitySchemes:
            token:
              type: http
              scheme: bearer
              description: The content of `run/admin.token` in the data folder; another with each start.
          parameters:
            ID:
              name: id
              in: path
              required: true
              description: An identifier, as the list shows it.
              schema: {type: string}
          responses:
            Failure:
              description: Not done, and why.
              content:
                application/json:
                  schema: {$ref: "#/components/schemas/Failure"}
            Health:
              description: Ready (200), or not (503), and what is wrong.
              content:
                application/json:
                  schema: {$ref: "#/components/schemas/Health"}
            Status:
              description: The service.
              content:
                application/json:
                  schema: {$ref: "#/components/schemas/Status"}
            Clock:
              description: The service's time.
              content:
                application/json:
                  schema: {$ref: "#/components/schemas/Clock"}
          schemas:
            Failure:
              type: object
              required: [error]
              properties:
                error: {type: string, description: What is wrong, and how to mend it.}
              additionalProperties: false
            Health:
              type: object
              required: [status, problems]
              properties:
                status: {enum: [ready, not ready]}
                problems: {type: array, items: {type: string}}
              additionalProperties: false
            Status:
              type: object
              required: [version, pid, started, devicesConnected, notificationsWaiting]
              properties:
                version: {type: string}
                pid: {type: integer}
                started: {type: string, format: date-time}
                devicesConnected: {type: integer, minimum: 0}
                notificationsWaiting: {type: integer, minimum: 0}
              additionalProperties: false
            JournalLine:
              type: object
              required: [time, id, unique_id, device, topic, environment, state]
              properties:
                time: {type: string, format: date-time}
                id: {type: string, format: uuid, description: "`apns-id`."}
                unique_id: {type: string, format: uuid, description: "`apns-unique-id`."}
                device: {type: string, description: Empty in a line about a broadcast.}
                topic: {type: string}
                environment: {$ref: "#/components/schemas/Environment"}
                state: {type: string, examples: [stored, delivered from storage]}
                reason: {type: string, examples: [device offline]}
                replacement: {type: string, format: uuid, description: The `apns-id` of what took its place.}
                devices: {type: integer, minimum: 0, description: How many devices a broadcast went to.}
              additionalProperties: false
            Environment:
              enum: [production, sandbox]
            Channel:
              type: object
              required: [id, topic, environment, policy, created, subscribers, published, delivered, stored]
              properties:
                id: {type: string, description: "`apns-channel-id`."}
                topic: {type: string}
                environment: {$ref: "#/components/schemas/Environment"}
                policy: {enum: [0, 1], description: "`message-storage-policy`."}
                created: {type: string, format: date-time}
                subscribers: {type: integer, minimum: 0, description: Connected devices that are subscribed.}
                published: {type: integer, minimum: 0, description: Broadcasts since the service started.}
                delivered: {type: integer, minimum: 0, description: Copies that devices took since the service started.}
                stored: {type: boolean, description: Whether a message waits for devices that subscribe later.}
              additionalProperties: false
            Credential:
              type: object
              required: [id, kind, topics, environments, created]
              properties:
                id: {type: string}
                kind: {enum: [certificate, key]}
                serial: {type: string, pattern: "^[0-9a-f]+$"}
                team: {type: string}
                topics: {type: array, items: {type: string}}
                environments: {type: array, items: {$ref: "#/components/schemas/Environment"}}
                created: {type: string, format: date-time}
                expires: {type: string, format: date-time}
                revoked: {type: string, format: date-time}
              additionalProperties: false
            Device:
              type: object
              required: [id, serial, created, expires, connected]
              properties:
                id: {type: string}
                name: {type: string}
                serial: {type: string, pattern: "^[0-9a-f]+$"}
                created: {type: string, format: date-time}
                expires: {type: string, format: date-time}
                revoked: {type: string, format: date-time}
                connected: {type: boolean, description: Whether it is connected now.}
              additionalProperties: false
            Clock:
              type: object
              required: [now, milliseconds, adjustable]
              properties:
                now: {type: string, format: date-time}
                milliseconds: {type: integer, description: Since 1970.}
                adjustable: {type: boolean}
              additionalProperties: false

        """#
}
