/** What transports to HTTP and Kafka are told, by a configuration or by an application. */
import Type from 'typebox'
import {
  addressRange,
  list,
  named,
  oneOf,
  positiveNumber,
  text,
  wholeNumber,
} from '../../../core/settings/kinds.ts'
import { CONNECTION_KEYS, topicKey } from '../../../outgoing/kafka/connection-keys.ts'
import { COMPRESSIONS } from '../../../outgoing/kafka/record.ts'

const secret = () =>
  text(
    'Signs every message in the manner of Standard Webhooks (`http`): `whsec_` and base64 of 24 to 64 bytes.',
    {
      pattern: /^\S+$/,
      allowed: 'a secret',
      secret: true,
    },
  )

export const HTTP_KEYS = {
  headers: Type.Optional(
    named(
      'Headers of every message, such as `authorization` (`http`).',
      Type.String({ allowed: 'a text', secret: true }),
      {
        allowed: 'a mapping of headers',
      },
    ),
  ),
  timeoutSeconds: Type.Optional(
    positiveNumber('How long an answer may take (`http`).', {
      to: 86_400,
      otherwise: '`deliveryTimeoutSeconds` alone',
    }),
  ),
  secret: Type.Optional(secret()),
  secrets: Type.Optional(
    list(
      'Instead of `secret`, while one replaces another: messages are signed with all of them (`http`).',
      secret(),
      {
        allowed: 'a list of secrets',
      },
    ),
  ),
  connections: Type.Optional(
    wholeNumber('Connections at the same time (`http`).', {
      from: 1,
      to: 10_000,
      otherwise: 'as many as `concurrency`',
    }),
  ),
  refusedAddresses: Type.Optional(
    list('Addresses that are never connected to (`http`).', addressRange('One range.'), {
      allowed: 'a list of address ranges',
      otherwise: '`link-local` and `metadata`',
    }),
  ),
}

export const KAFKA_KEYS = {
  topic: topicKey('The topic that messages are written to (`kafka`); it must exist.'),
  compression: Type.Optional(
    oneOf('How records are compressed (`kafka`).', COMPRESSIONS, { otherwise: '`none`' }),
  ),
  ...CONNECTION_KEYS,
}
