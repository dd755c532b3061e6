/** The calls that tell how webhooks are doing. */
import { INTEGER, objectOf, TEXT, TIME } from '../../http/describe-api.ts'
import type { SeedStatus } from '../seed.ts'
import type { WebhookCall } from './call.ts'
import { json } from './reply.ts'
import { endpoint } from './views.ts'

/** The store is there and the seed is applied: a server answers calls only then. */
const INITIALISED = 3

/** An address in its parts, without what may be credentials: those of a user, and the query. */
function callbackParts(address: string) {
  const url = URL.parse(endpoint(address))
  const decoded = decodedPath(url?.pathname ?? '')
  return {
    Scheme: url?.protocol.slice(0, -1) ?? '',
    Opaque: '',
    User: null,
    Host: url?.host ?? '',
    Path: decoded,
    // There only when it says more than the decoded path.
    RawPath: encodeURI(decoded) === url?.pathname ? '' : (url?.pathname ?? ''),
    OmitHost: false,
    ForceQuery: false,
    RawQuery: '',
    Fragment: '',
    RawFragment: '',
  }
}

function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** Tokens are never shown, whoever asks. */
const seeded = ({ id, name }: { readonly id: string; readonly name: string }) => ({
  ID: id,
  Name: name,
  Token: '',
})

const statusView = ({ hash, producers, channels, consumers }: SeedStatus) => ({
  SeedData: {
    DataHash: hash,
    Producers: producers.map(seeded),
    Channels: channels.map(seeded),
    Consumers: consumers.map((consumer) => ({
      ...seeded(consumer),
      CallbackURL: callbackParts(consumer.callbackUrl),
      Channel: consumer.channel,
      Type: consumer.type,
    })),
  },
  AppStatus: INITIALISED,
})

const ENTRIES = { type: 'array', items: objectOf({ ID: TEXT, Name: TEXT, Token: TEXT }) } as const

export const statusCalls: readonly WebhookCall[] = [
  {
    method: 'GET',
    path: '/_status',
    access: 'read',
    summary: 'Whether webhooks work, and what they were seeded with',
    success: [
      200,
      objectOf({
        SeedData: objectOf({ DataHash: TEXT, Producers: ENTRIES, Channels: ENTRIES, Consumers: ENTRIES }),
        AppStatus: INTEGER,
      }),
    ],
    errors: [500],
    answer: async (_request, { seeding }) => json(statusView(await seeding.status())),
  },
  {
    method: 'GET',
    path: '/job-status',
    access: 'read',
    summary: 'How many jobs each consumer has of each status',
    success: [
      200,
      {
        type: 'object',
        additionalProperties: {
          type: 'object',
          additionalProperties: {
            type: 'array',
            items: objectOf({
              status: INTEGER,
              count: INTEGER,
              oldestItemTimestamp: TIME,
              newestItemTimestamp: TIME,
              consumerId: TEXT,
              consumerName: TEXT,
            }),
          },
        },
      },
    ],
    errors: [500],
    answer: async (_request, { status }) => json(await status.jobs()),
  },
  {
    method: 'GET',
    path: '/dlq-status',
    access: 'read',
    summary: 'How many dead jobs each consumer has',
    success: [
      200,
      objectOf({
        consumers: {
          type: 'array',
          items: objectOf({
            channelId: TEXT,
            channelName: TEXT,
            consumerId: TEXT,
            consumerName: TEXT,
            deadCount: INTEGER,
          }),
        },
      }),
    ],
    errors: [500],
    answer: async (_request, { status }) => json(await status.dead()),
  },
]
