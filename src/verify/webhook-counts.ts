/** W2: the books of webhooks are exact: jobs per consumer and state, dead ones among them, and messages per channel. */
import { readDeadCounts } from '../webhooks/dead-counts.ts'
import { readTallies, TALLY, type TallyName } from '../webhooks/tallies.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { type Census, readSubjectNames, type SubjectName, takeCensus } from './webhook-census.ts'

/** A number in the books that is not what counting gives. */
export interface Miscount {
  readonly subject: number
  /** Of whom it is; undefined when there is no such consumer or channel. */
  readonly name: SubjectName | undefined
  readonly tally: TallyName | 'dead'
  readonly counted: number
  readonly actual: number
}

/** The names of tallies are the keys of a constant record. */
const TALLIES = [...(Object.keys(TALLY) as TallyName[]), 'dead'] as const

/** What is in the books of webhooks and is not so. */
export async function* findMiscounts(
  audit: Pick<Audit, 'session'>,
  census: Census,
): AsyncGenerator<Miscount> {
  const { session } = audit
  const names = await readSubjectNames(session)
  const dead = new Map((await readDeadCounts(session)).map((each) => [each.consumer, each.deadCount]))
  const books = await readTallies(session)
  const subjects = new Set([...census.keys(), ...books.keys(), ...dead.keys()])
  for (const subject of [...subjects].sort((a, b) => a - b)) {
    const name = names.get(subject)
    for (const tally of TALLIES) {
      const counted = (tally === 'dead' ? dead.get(subject) : books.get(subject)?.[tally]) ?? 0
      const actual = census.get(subject)?.get(tally) ?? 0
      if (counted !== actual || (name === undefined && actual !== 0))
        yield { subject, name, tally, counted, actual }
    }
  }
}

export const webhookCounts: Invariant = {
  id: 'W2',
  promise: 'every count of webhook jobs and messages is what counting gives',
  rows: ({ jobs, messages }) => jobs + messages,
  async *check(audit) {
    const census = await takeCensus(audit)
    for await (const miscount of findMiscounts(audit, census)) yield findingOf(miscount)
  },
}

const MESSAGES: readonly string[] = ['dispatched', 'scheduled', 'scheduledDispatched']

function findingOf({ subject, name, tally, counted, actual }: Miscount): Finding {
  const what = `${tally} ${MESSAGES.includes(tally) ? 'messages' : 'jobs'}`
  return {
    what:
      counted === actual
        ? `there are ${actual} ${what} of number ${subject}, which nobody has`
        : `${shown(subject, name)} has ${actual} ${what}, and the books say ${counted}`,
    row: {
      subject: String(subject),
      ...(name === undefined ? {} : { channel: name.channelId }),
      ...(name?.consumerId == null ? {} : { consumer: name.consumerId }),
      tally,
      books: String(counted),
      found: String(actual),
    },
  }
}

function shown(subject: number, name: SubjectName | undefined): string {
  if (name === undefined) return `number ${subject}`
  return name.consumerId === null
    ? `channel '${name.channelId}'`
    : `consumer '${name.consumerId}' of channel '${name.channelId}'`
}
