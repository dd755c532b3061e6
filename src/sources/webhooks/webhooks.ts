/** The webhooks of an office, wired together. Calls work from the start; deliveries begin with `start`. */
import { isIP } from 'node:net'
import { addressRanges } from '../../core/address-ranges.ts'
import type { Log } from '../../core/log.ts'
import type { Rounds, Service } from '../../core/rounds.ts'
import { Xids } from '../../core/xid.ts'
import type { LetterSource } from '../../letters/source.ts'
import type { OfficeRuns } from '../../letters/work.ts'
import type { Database } from '../../store/database.ts'
import { WebhookAdmin } from './admin/admin.ts'
import { Courier, type CourierOptions } from './courier/courier.ts'
import { BulkRuns } from './jobs/bulk-runs.ts'
import { Jobs } from './jobs/jobs.ts'
import { webhookLetterSource } from './letters/source.ts'
import { Broadcasts } from './messages/broadcasts.ts'
import { Messages } from './messages/messages.ts'
import { definePruning } from './messages/pruning.ts'
import { scheduling } from './messages/scheduler.ts'
import { readPausedConsumers, readWebhookGauges, WebhookMetrics } from './numbers/metrics.ts'
import { Status } from './numbers/status.ts'
import { Consumers } from './registry/consumers.ts'
import { CHANNELS, Holders, PRODUCERS } from './registry/holders.ts'
import { Seeding } from './registry/seed.ts'
import type { WebhookSettings } from './settings.ts'
import type { Channel, Producer } from './webhook.ts'

interface WebhookParts extends CourierOptions {
  readonly runs: OfficeRuns
}

export class Webhooks implements Service {
  readonly name = 'webhooks'
  readonly settings: WebhookSettings
  readonly xids: Xids
  readonly producers: Holders<Producer>
  readonly channels: Holders<Channel>
  readonly consumers: Consumers
  readonly messages: Messages
  readonly seeding: Seeding
  readonly broadcasts: Broadcasts
  readonly courier: Courier
  readonly jobs: Jobs
  readonly bulk: BulkRuns
  readonly status: Status
  readonly admin: WebhookAdmin
  readonly metrics: WebhookMetrics
  readonly source: LetterSource
  readonly #db: Database
  readonly #scheduling: Rounds
  readonly #runs: OfficeRuns
  readonly #log: Log

  constructor({ db, clock, log, registers, runs, settings, announcer }: WebhookParts) {
    const xids = new Xids(clock)
    const onJobs = (consumers: ReadonlySet<number>): void => this.courier.wake(consumers)
    const common = { db, clock, log, registers, settings, xids, onJobs }
    this.#db = db
    this.settings = settings
    this.xids = xids
    this.producers = new Holders(PRODUCERS, common)
    this.channels = new Holders(CHANNELS, common)
    this.consumers = new Consumers(common, addressCheck(settings))
    this.messages = new Messages(db)
    this.seeding = new Seeding(common, settings.seed)
    this.broadcasts = new Broadcasts(common)
    this.courier = new Courier({ ...common, announcer })
    this.jobs = new Jobs(common)
    this.bulk = new BulkRuns({ runs, settings, onJobs })
    this.status = new Status(db)
    this.admin = new WebhookAdmin({
      ...common,
      channels: this.channels,
      consumers: this.consumers,
      wake: (consumers) => this.courier.wake(consumers),
    })
    this.metrics = new WebhookMetrics({
      clock,
      gauges: () => readWebhookGauges(db, clock),
      held: () => this.courier.held,
    })
    this.courier.onAttempt((attempt) => this.metrics.observe(attempt))
    this.source = webhookLetterSource(common)
    this.#scheduling = scheduling(common)
    this.#runs = runs
    this.#log = log
  }

  async start(): Promise<void> {
    await this.seeding.apply()
    this.courier.start()
    this.#scheduling.start()
    // Only where webhooks are served: other offices do not know for how long messages are kept.
    definePruning(this.#runs, { settings: this.settings, log: this.#log })
  }

  get rounds(): readonly Rounds[] {
    return [this.#scheduling, ...this.courier.rounds]
  }

  async pausedConsumers(): Promise<number> {
    return (await this.#db.session('webhooks.paused', readPausedConsumers)).length
  }

  /** Finishes attempts under way, and hands back what is not begun. */
  async stop(): Promise<void> {
    // All at once: without a store each would wait in turn, longer than a server has.
    await Promise.all([this.#scheduling.stop(), this.broadcasts.idle(), this.courier.stop()])
  }
}

/** By the URL alone: what a name resolves to is checked on delivery. */
function addressCheck({ delivery }: WebhookSettings): (url: URL) => boolean {
  const ranges = addressRanges(delivery.refusedAddresses)
  if ('problem' in ranges) throw new TypeError(`webhooks.delivery.refusedAddresses: ${ranges.problem}`)
  return ({ hostname }) => {
    const address = hostname.replace(/^\[|\]$/g, '')
    return isIP(address) === 0 || !ranges.refuses(address)
  }
}
