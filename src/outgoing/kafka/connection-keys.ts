/**
 * The keys of a configuration by which brokers are reached and topics named: those of the section `kafka`, and of an outbox whose transport
 * is Kafka. Each `description` completes the sentence "allowed: …" in an error.
 */
import Type, { type Static } from 'typebox'
import { type Fixed, oneOf, section } from '../../core/settings/kinds.ts'
import { isServer, SASL_MECHANISMS, SECURITY_PROTOCOLS } from './connection.ts'
import { isTopicName } from './record.ts'

export const TOPIC_FORM = "1 to 249 letters, digits, '.', '_' or '-'"

export const topicKey = () => Type.Refine(Type.String({ description: TOPIC_FORM }), isTopicName)

/** What Kafka and headers carry as a name of somebody; Kafka itself allows any text. */
export const nameKey = () =>
  Type.String({ pattern: /^[^\p{Cc}]{1,255}$/u, description: '1 to 255 characters, no control characters' })

const path = () => Type.Optional(Type.String({ pattern: /^[^\0]+$/, description: 'the path of a file' }))
const secret = () =>
  Type.Optional(Type.String({ minLength: 1, description: 'a text, not an empty one', secret: true }))

export const CONNECTION_KEYS = {
  servers: Type.Optional(
    Type.Array(
      Type.Refine(Type.String({ description: "'HOST:PORT' with a port from 1 to 65535" }), isServer),
      { description: "a list of 'HOST:PORT'" },
    ),
  ),
  client_id: Type.Optional(nameKey()),
  security_protocol: Type.Optional(oneOf(SECURITY_PROTOCOLS)),
  ssl_cafile: path(),
  ssl_certfile: path(),
  ssl_keyfile: path(),
  ssl_password: secret(),
  ssl_password_file: path(),
  ssl_check_hostname: Type.Optional(Type.Boolean({ description: 'true or false' })),
  sasl_mechanism: Type.Optional(oneOf(SASL_MECHANISMS)),
  sasl_username: Type.Optional(Type.String({ minLength: 1, description: 'a text, not an empty one' })),
  sasl_password: secret(),
  sasl_password_file: path(),
  sasl_token: secret(),
  sasl_token_file: path(),
}

const ConnectionSchema = section(CONNECTION_KEYS)

/** How brokers are reached, as it is given. */
export type ConnectionOptions = Fixed<Static<typeof ConnectionSchema>>
