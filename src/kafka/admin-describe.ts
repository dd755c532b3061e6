/** How `/api/kafka` looks in the OpenAPI document. */
import { INTEGER, objectOf, TEXT, TEXT_OR_NULL, TIME, textUpTo } from '../http/describe-api.ts'
import { STATE_NAMES } from './event.ts'
import { PROFILES } from './settings.ts'

const TEXTS = { type: 'array', items: TEXT }

export const OVERVIEW = {
  type: 'object',
  required: ['enabled'],
  properties: {
    enabled: {
      type: 'boolean',
      description: 'Whether this server takes in dead events; without, all else is left out',
    },
    groupId: TEXT,
    acceptUnlistedServices: { type: 'boolean' },
    services: {
      type: 'array',
      items: objectOf({
        name: TEXT,
        dlqTopic: TEXT,
        retryTopic: { ...TEXT, description: '`$original`: the topic that the event came from originally' },
        profile: { type: 'string', enum: [...PROFILES] },
        aliases: TEXTS,
        originalTopics: TEXTS,
        types: TEXTS,
      }),
    },
    dlqTopics: { ...TEXTS, description: 'Topics that are taken in and belong to no service' },
    intake: objectOf({
      state: { type: 'string', enum: ['starting', 'reading', 'degraded', 'stopped'] },
      sinceUtc: TIME,
      troubles: TEXTS,
      missingTopics: TEXTS,
      partitions: {
        type: 'array',
        description: 'Those that this server reads',
        items: objectOf({
          topic: TEXT,
          partition: INTEGER,
          committed: TEXT_OR_NULL,
          end: TEXT_OR_NULL,
          lag: TEXT_OR_NULL,
          trouble: TEXT_OR_NULL,
        }),
      },
    }),
  },
}

export const EVENT_KEY = { dlqId: { type: 'string', format: 'uuid' } }

const PLACE = {
  dlqId: { ...TEXT, description: 'The newest of the letter: asked for by an older one, it is another' },
  rowKey: TEXT,
  state: { type: 'string', enum: STATE_NAMES },
  service: TEXT,
  originalTopic: TEXT,
}

export const PLACED = objectOf(PLACE)

export const EVENT = objectOf({
  ...PLACE,
  type: TEXT,
  topic: TEXT,
  partition: INTEGER,
  offset: TEXT,
  timestampUtc: TIME,
  key: TEXT_OR_NULL,
  keyBase64: TEXT_OR_NULL,
  valueBase64: TEXT_OR_NULL,
  editedValueBase64: TEXT_OR_NULL,
  valueForm: { type: 'string', enum: ['json', 'null', 'other'] },
  headers: { type: 'array', items: objectOf({ name: TEXT, value: TEXT_OR_NULL, valueBase64: TEXT_OR_NULL }) },
  correlationId: TEXT_OR_NULL,
  mintedCorrelationId: TEXT_OR_NULL,
  originalEventId: TEXT_OR_NULL,
  eventId: TEXT_OR_NULL,
  exception: { type: 'object' },
  family: TEXT_OR_NULL,
  origin: { type: 'object' },
  firstOrigin: { type: ['object', 'null'] },
  attempts: INTEGER,
  attemptsReported: { type: ['integer', 'null'] },
  duplicateOf: TEXT_OR_NULL,
  reasons: TEXTS,
  warnings: TEXTS,
  chain: { type: 'array', items: { type: 'object' }, description: 'Earlier deaths, the oldest first' },
})

/** What names of topics have at most. */
export const MAX_NAME = 249

export const REASSIGN = {
  service: { ...textUpTo(MAX_NAME), description: 'The name or an alias of a service' },
  topic: {
    ...textUpTo(MAX_NAME),
    type: ['string', 'null'],
    description: 'The original topic; left out, the one that the record says',
  },
}
