/**
 * What goes wrong in the invented systems: errors with class, words and stack, as their programs would throw them. Numbers and names
 * in them vary, and each of these functions still gives one signature.
 */
import { signatureOf } from '../core/signature.ts'
import type { ErrorDescription } from '../core/thrown.ts'

/** What comes of an error that a program in JavaScript throws. */
function thrown(
  errorClass: string,
  errorMessage: string,
  frames: readonly string[],
  at = '    at ',
): ErrorDescription {
  const stack = [`${errorClass}: ${errorMessage}`, ...frames.map((frame) => `${at}${frame}`)]
  return { errorClass, errorMessage, errorStack: stack.join('\n') }
}

/** The same in Python, whose stacks end with where it happened. */
function raised(errorClass: string, errorMessage: string, frames: readonly string[]): ErrorDescription {
  const stack = ['Traceback (most recent call last):', ...frames, `${errorClass}: ${errorMessage}`]
  return { errorClass, errorMessage, errorStack: stack.join('\n') }
}

/** An error to be thrown that is described as this. */
export function errorOf({ errorClass, errorMessage, errorStack }: ErrorDescription): Error {
  const error = new Error(errorMessage)
  error.name = errorClass
  error.stack = errorStack ?? ''
  return error
}

/** The storm: the gateway does not answer. */
export const gatewayTimeout = (host: number): ErrorDescription =>
  thrown('ConnectTimeoutError', `connect ETIMEDOUT 203.0.113.${host}:443 after 10000 ms`, [
    'TCPConnectWrap.afterConnect [as oncomplete] (node:net:1637:16)',
    'async PaymentGateway.charge (/srv/payments/dist/gateway.js:88:19)',
    'async chargeOrder (/srv/payments/dist/charge.js:41:5)',
  ])

/** Ends by itself: whoever sends the invoice again finds the period open. */
export const periodLocked = (invoice: string, period: string): ErrorDescription =>
  thrown(
    'PeriodLocked',
    `invoice ${invoice} cannot be posted: period ${period} is locked by the closing run`,
    [
      'Ledger.post (/srv/billing/dist/ledger.js:132:11)',
      'async issueInvoice (/srv/billing/dist/issue.js:57:3)',
    ],
  )

/** Never ends by itself: the message lacks what the program reads. */
export const noSite = (): ErrorDescription =>
  thrown('TypeError', "Cannot read properties of undefined (reading 'region')", [
    'clusterFor (/srv/provisioning/dist/placement.js:23:32)',
    'async registerInstance (/srv/provisioning/dist/register.js:71:21)',
    'process.processTicksAndRejections (node:internal/process/task_queues:105:5)',
  ])

export const vaultRefused = (vault: string): ErrorDescription =>
  thrown('Error', `connect ECONNREFUSED 10.20.7.${vault.length}:8200`, [
    'TCPConnectWrap.afterConnect [as oncomplete] (node:net:1637:16)',
    'async VaultClient.write (/srv/rotation/dist/vault.js:64:14)',
  ])

export const rateLimited = (domain: string): ErrorDescription =>
  thrown('AcmeError', `urn:ietf:params:acme:error:rateLimited: too many certificates for "${domain}"`, [
    'AcmeOrder.finalize (/srv/tls/dist/acme.js:210:13)',
    'async renew (/srv/tls/dist/renew.js:38:22)',
  ])

export const schemaViolation = (severity: string): ErrorDescription =>
  thrown(
    'SchemaViolation',
    `alert does not match schema alert/v3: /severity must be one of sev1, sev2, sev3, sev4, got "${severity}"`,
    ['validate (/srv/alerts/dist/schema.js:19:11)', 'async processAlert (/srv/alerts/dist/process.js:12:3)'],
  )

export const customerExists = (email: string): ErrorDescription =>
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

export const templateBroken = (template: string): ErrorDescription =>
  raised('jinja2.exceptions.UndefinedError', "'voucher' is undefined", [
    '  File "/srv/mailer/worker.py", line 51, in run',
    '    body = render(job)',
    `  File "/srv/mailer/render.py", line 37, in render`,
    `    return env.get_template("${template}").render(**job.fields)`,
  ])

/** Java's way to say that a partner changed its mind about a field. */
export const feedUnreadable = (line: number): ErrorDescription =>
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

/** The groups that a visitor is shown first. */
export const DEMO_SIGNATURES = {
  /** Its letters are confirmed when they are sent back. */
  healingSignature: signatureOf(periodLocked('INV-1', '2026-01')).fingerprint,
  /** Hundreds of its letters come within a minute. */
  stormSignature: signatureOf(gatewayTimeout(1)).fingerprint,
} as const

/** The group whose letters return when they are sent back as they are. */
export const RETURNING_SIGNATURE = signatureOf(noSite()).fingerprint
