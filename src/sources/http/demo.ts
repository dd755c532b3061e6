/** Reports in the demo: failures of systems without a queue here, over `POST /api/dlq`. */
import type { JsonObject } from '../../api/json-body.ts'
import type { ErrorDescription } from '../../core/thrown.ts'
import { CUSTOMERS, label, raised, signUp, thrown } from '../../demo/story/shop.ts'
import {
  type DemoOffice,
  type DemoStory,
  leaseInPast,
  type Occasion,
  type PastGroup,
  type SourceDemo,
} from '../../demo/story/story.ts'
import type { LetterSummary } from '../../letters/letter.ts'
import { readReport } from '../../letters/reports/report.ts'

export const reportsDemo: SourceDemo = {
  open: (office, story) => ({
    happens: [{ weight: 4, act: () => reportFailure(office, story) }],
    died: [{ weight: 15, act: () => reportedInPast(office, story) }],
  }),
}

const customerExists = (email: string): ErrorDescription =>
  raised(
    'psycopg.errors.UniqueViolation',
    `duplicate key value violates unique constraint "customers_email_key"\nDETAIL:  Key (email)=(${email}) already exists.`,
    [
      '  File "/srv/crm/worker.py", line 88, in run',
      '    self.handle(job)',
      '  File "/srv/crm/customers.py", line 142, in insert_customer',
      '    cur.execute(INSERT_CUSTOMER, row)',
    ],
  )

const templateBroken = (template: string): ErrorDescription =>
  raised('jinja2.exceptions.UndefinedError', "'voucher' is undefined", [
    '  File "/srv/mailer/worker.py", line 51, in run',
    '    body = render(job)',
    `  File "/srv/mailer/render.py", line 37, in render`,
    `    return env.get_template("${template}").render(**job.fields)`,
  ])

/** Java, when a partner changed a field. */
const feedUnreadable = (line: number): ErrorDescription =>
  thrown(
    'com.fasterxml.jackson.databind.exc.InvalidFormatException',
    `Cannot deserialize value of type \`java.time.LocalDate\` from String "31.02.2026" at line ${line}`,
    [
      'com.fasterxml.jackson.databind.exc.InvalidFormatException.from(InvalidFormatException.java:67)',
      'example.releases.FeedReader.read(FeedReader.java:118)',
      'example.releases.Evaluation.run(Evaluation.java:44)',
    ],
    '\tat ',
  )

interface Reporter {
  readonly weight: number
  readonly actor: string
  report(occasion: Occasion): JsonObject
}

const failureOf = ({ errorClass, errorMessage, errorStack }: ErrorDescription): JsonObject => ({
  errorClass,
  errorMessage,
  ...(errorStack === null ? {} : { errorStack }),
})

export const REPORTERS: readonly Reporter[] = [
  {
    weight: 3,
    actor: 'crm',
    report: (occasion) => ({
      engine: 'http',
      instanceId: `crm-${occasion.chance.whole(1, 3)}`,
      originalQueue: 'sign-ups',
      originalMessage: signUp(occasion).toString(),
      dequeueCount: occasion.chance.whole(1, 5),
      ...failureOf(customerExists(occasion.chance.pick(CUSTOMERS).email)),
    }),
  },
  {
    weight: 2,
    actor: 'mailer',
    report: (occasion) => ({
      engine: 'http',
      instanceId: 'mailer-1',
      originalQueue: 'sign-ups',
      originalMessage: signUp(occasion).toString(),
      headers: { template: 'welcome.html', locale: 'de' },
      dequeueCount: 3,
      ...failureOf(templateBroken('welcome.html')),
    }),
  },
  {
    weight: 1,
    actor: 'release-feed',
    // An engine without a queue: its letters can be discarded, and have nowhere to go.
    report: (occasion) => ({
      engine: 'update-publisher',
      instanceId: 'release-feed',
      originalMessage: label(occasion).toString('base64'),
      originalMessageEncoding: 'base64',
      dequeueCount: 1,
      ...failureOf(feedUnreadable(occasion.chance.whole(10, 900))),
    }),
  },
]

async function reportFailure({ letters }: DemoOffice, story: DemoStory): Promise<LetterSummary> {
  const { chance, now } = story
  const { actor, report } = chance.pickBy(REPORTERS)
  const fields = { ...report(story), sourceId: `${actor}-${chance.hex(12)}` }
  const context = { engines: letters.engines, now, correlationId: chance.uuid(), actor }
  return (await letters.capture(readReport(fields, context))).letter
}

async function reportedInPast(office: DemoOffice, story: DemoStory): Promise<PastGroup> {
  const letter = await reportFailure(office, story)
  const { originalQueue } = letter
  if (originalQueue === null) return { letters: [letter], workOn: null }
  const workOn = async () => {
    const ids = (await leaseInPast(office, originalQueue, 1)).map(({ id }) => id)
    await office.queues.complete({ queueName: originalQueue, partition: 0, ids })
  }
  return { letters: [letter], workOn }
}
