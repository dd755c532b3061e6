/** The account of an office: puts intake, way back, writes and retention together, starts and stops them, and says how it stands. */
import type { Rounds, Service } from '../../core/rounds.ts'
import type { Edit, Letter, LetterId, Sending } from '../../letters/letter.ts'
import type { Departing, Sent } from '../../letters/source.ts'
import type { AzureTables } from '../../outgoing/azure/keys.ts'
import { Account } from './account.ts'
import type { AzureAccount, AzureState } from './face.ts'
import { Intake } from './intake.ts'
import { AzureCounters, type AzureParts } from './parts.ts'
import { standingOf } from './register.ts'
import { retentionRounds } from './retention.ts'
import { WayBack } from './way-back.ts'
import { writeRounds } from './writes.ts'

export class Azure implements AzureAccount, Service {
  readonly name = 'azure'
  readonly settings: AzureTables
  readonly account: Account
  readonly counters: AzureCounters
  readonly #parts: AzureParts
  readonly #intake: Intake
  readonly #way: WayBack
  readonly #writes: Rounds
  readonly #retention: Rounds | null

  private constructor(parts: AzureParts) {
    this.#parts = parts
    this.settings = parts.settings
    this.account = parts.account
    this.counters = parts.counters
    this.#intake = new Intake(parts)
    this.#writes = writeRounds(parts)
    this.#way = new WayBack(parts, () => this.written())
    this.#retention = parts.settings.retention === 'bartleby' ? retentionRounds(parts) : null
  }

  /** Throws where a library is missing or the connection string cannot be read. Asks nothing of the account. */
  static async open(parts: Omit<AzureParts, 'account' | 'counters'>): Promise<Azure> {
    const account = await Account.open(parts.settings, parts.clock)
    return new Azure({ ...parts, account, counters: new AzureCounters() })
  }

  get rounds(): readonly Rounds[] {
    return [
      ...this.#intake.rounds,
      this.#writes,
      this.#way.recovery,
      ...(this.#retention === null ? [] : [this.#retention]),
    ]
  }

  /** Lets go of what nobody holds any more, then begins. The account may be away: it is waited for. */
  async start(): Promise<void> {
    await this.#way.recovery.now()
    for (const rounds of this.rounds) rounds.start()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#way.stop(), ...this.rounds.map((rounds) => rounds.stop())])
  }

  /** Acts are on file that their entities do not say yet. */
  written(): void {
    void this.#writes.now()
  }

  send(letter: Departing, edit: Edit | null, sending: Sending): Promise<Sent> {
    return this.#way.send(letter, edit, sending)
  }

  /** The table of letters, as marks and source ids call it. */
  get dlqTable(): string {
    return this.account.called(this.settings.dlqTableName)
  }

  contentOf(letter: Pick<Letter, 'id' | 'version'>, content: Uint8Array): Uint8Array {
    return this.#way.contentOf(letter, content)
  }

  settleUncertain(id: LetterId, hasArrived: boolean, actor: string): Promise<void> {
    return this.#way.settleUncertain(id, hasArrived, actor)
  }

  async state(): Promise<AzureState> {
    const standing = await this.#parts.db.session('azure.standing', standingOf)
    return { ...standing, readings: this.#intake.readings(), troubles: this.troubles() }
  }

  /** From memory: probes ask often. */
  troubles(): readonly string[] {
    const slow = this.account.slowUntil === null ? [] : ['the account asked for a pause (throttled)']
    const failing = this.rounds.flatMap((rounds) => {
      const { name, isFailing, lastError } = rounds.state()
      return isFailing ? `${name}: ${lastError?.errorMessage ?? 'failed'}` : []
    })
    const missing = this.#intake
      .readings()
      .flatMap(({ name, isMissing }) => (isMissing ? `'${name}' does not exist in the account` : []))
    return [...slow, ...failing, ...missing]
  }
}
