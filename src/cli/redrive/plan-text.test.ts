import { describe, expect, it } from 'vitest'
import { redriveAt } from '../../../test/world/redrive.ts'
import type { RedriveDetail as Answer } from '../../client/redrives.ts'
import { instant } from '../../core/clock.ts'
import type { RedriveDetail, SampleLetter } from '../../redrive/redrive.ts'
import { redriveDetail } from '../../redrive/view.ts'
import { PLAIN } from '../../terminal/terminal.ts'
import { detailText, nextStep, planText } from './text.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

const letter = (changes: Partial<SampleLetter> = {}): SampleLetter => ({
  key: { engine: 'queues', rowKey: 'i-7-20270110T090000000000Z' },
  instanceId: 'i-7',
  errorMessage: 'currency unknown\nat line 3',
  outgoing: {
    queue: 'orders',
    encoding: '',
    kind: 'order',
    reference: '',
    payload: bytes('{"a":1,"currency":"EUR"}'),
  },
  before: null,
  refusal: null,
  ...changes,
})

/** As it arrives: through JSON. */
const detail = (changes: Partial<RedriveDetail> = {}): Answer => {
  const shown = redriveDetail(
    {
      ...redriveAt({ terms: { rate: 50 }, selection: { by: 'filter', filter: { originalQueue: 'orders' } } }),
      destinations: [{ source: 'queues', name: 'orders', planned: 1_204, sent: 0, skipped: 0, failed: 0 }],
      exceptions: [],
      sample: [letter()],
      ...changes,
    },
    instant(1_800_000_000_000_000n),
  )
  return JSON.parse(JSON.stringify(shown))
}

const text = (changes: Partial<RedriveDetail> = {}, letters = 3) =>
  planText(detail(changes), { letters, width: undefined, style: PLAIN })

describe('a plan', () => {
  it('says what it would do, to whom, and how that would look', () => {
    const plan = text()
    expect(plan).toMatch(
      /^Send 1,204 letters back to orders, at most 50 a second\.\n {2}letters {4}queue:orders\n[\s\S]*\n {2}1,204 {2}eligible {8}are in the plan\n/,
    )
    expect(plan).toContain('Destinations\n  SOURCE  LETTERS  DESTINATION\n  queues    1,204  orders\n')
    expect(plan).toContain(`The first letters as they would be sent
  queues i-7-20270110T090000000000Z  currency unknown
    to orders, 24 bytes, JSON, kind order
      {
        "a": 1,
        "currency": "EUR"
      }
  … and 1,203 letters more`)
  })

  it('shows what a repair changes, and what it refuses', () => {
    const before = { payload: bytes('{"a":1,"currency":"€"}') }
    const sample = [letter({ before }), letter({ outgoing: null, refusal: "'/a' is not there\u001b" })]
    const plan = text({ sample })
    expect(plan).toContain(
      ', repaired\n        {\n          "a": 1,\n      -   "currency": "€"\n      +   "currency": "EUR"\n        }\n',
    )
    expect(plan).toContain("would be refused: '/a' is not there\\x1b\n")
  })

  it('shows as many letters as asked for', () => {
    expect(text({}, 0)).not.toContain('The first letters')
    expect(text({ sample: [letter(), letter()] }, 1)).toContain('… and 1,203 letters more')
  })

  it('says how to go on', () => {
    expect(nextStep(detail(), ' --url http://a')).toMatch(
      /^plan \w{20} is valid until \S+ \S+Z; nothing was changed. Start it with:\n {2}bartleby redrive start \w{20} --watch --url http:\/\/a$/,
    )
  })
})

it('a redrive is shown with its course, its plan, where letters went and why others did not', () => {
  const shown = detailText(
    detail({
      state: 'stopped',
      note: 'more than 20% of the last 100 came back',
      startedAt: instant(1_800_000_060_000_000n),
      startedBy: 'ops',
      endedAt: instant(1_800_000_120_000_000n),
      exceptions: [{ outcome: 'failed', reason: 'send_refused', letters: 1 }],
      sample: [],
    }),
    { width: undefined, style: PLAIN },
  )
  expect(shown).toMatch(/^c00000000000000000g0 {2}Stopped: more than 20% of the last 100 came back\./)
  expect(shown).toMatch(
    /\n {2}started {4}\S+ \S+Z by ops\n {2}ended {6}\S+ \S+Z, stopped\n {2}note {7}more than 20%/,
  )
  expect(shown).toContain('\nPlan\n  1,204  matched ')
  expect(shown).toContain('\nNot sent\n  failed   1 letter: refused where it was to go')
})
