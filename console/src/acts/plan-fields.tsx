/** How a redrive is to go: where to, at which pace, what ends it, in which order, changed how, and why. */
import { Anchor, Autocomplete, Group, NativeSelect, NumberInput, Stack, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type RefObject, useRef, useState } from 'react'
import { queuesQuery } from '../api/queries.ts'
import { isSending, ORDERS, type RedriveAction, type RedriveOrder } from '../api/redrive-types.ts'
import { CAREFUL, type Draft, type DraftField, type DraftProblem, USUAL } from './plan-draft.ts'
import { PlanRepair } from './plan-repair.tsx'
import { waitWords } from './plan-words.ts'

export interface PlanFieldsProps {
  readonly act: RedriveAction
  readonly draft: Draft
  /** Shown at its field. */
  readonly problem: DraftProblem | null
  readonly change: (changes: Partial<Draft>) => void
}

const ORDER_WORDS: Readonly<Record<RedriveOrder, string>> = {
  key: 'Order of capture per key',
  capture: 'Order of capture, one by one',
  none: 'No order',
}

export function PlanFields({ act, draft, problem, change }: PlanFieldsProps) {
  const errorAt = (field: DraftField) => (problem?.field === field ? problem.says : undefined)
  const first = useRef<HTMLInputElement>(null)
  return (
    <Stack gap="sm">
      {act === 'move' && (
        <QueueField queue={draft.queue} error={errorAt('queue')} change={(queue) => change({ queue })} />
      )}
      <Textarea
        label="Reason"
        description={
          act === 'discard' ? 'Kept with each letter.' : 'Optional; kept with the redrive and in history.'
        }
        required={act === 'discard'}
        autosize
        minRows={1}
        maxRows={6}
        maxLength={4_000}
        data-autofocus={act === 'move' ? undefined : true}
        value={draft.reason}
        error={errorAt('reason')}
        onChange={(event) => change({ reason: event.currentTarget.value })}
      />
      <div className="plan-terms">
        <OptionalNumber
          label="Rate per destination"
          description="Letters per second. Empty: no limit."
          value={draft.rate}
          allowDecimal
          error={errorAt('rate')}
          set={(rate) => change({ rate })}
        />
        {isSending(act) && (
          <>
            <OptionalNumber
              label="Try first (canary)"
              description={`Waits for their outcomes, ${waitWords(draft.waitSeconds)} at most. Empty: none.`}
              field={first}
              value={draft.canary}
              error={errorAt('canary')}
              set={(canary) => change({ canary })}
            />
            {draft.canary !== null && (
              <OptionalNumber
                label="Continue if confirmed ≥ %"
                description="With fewer, the redrive pauses."
                placeholder={String(USUAL.confirmPercent)}
                value={draft.confirmPercent}
                allowDecimal
                set={(confirmPercent) => change({ confirmPercent })}
              />
            )}
            <OptionalNumber
              label="Stop if returned > %"
              description="Empty: never."
              value={draft.stopPercent}
              allowDecimal
              error={errorAt('stopRule')}
              set={(stopPercent) => change({ stopPercent })}
            />
            {draft.stopPercent !== null && (
              <OptionalNumber
                label="in the last"
                description="Outcomes that the rule looks at."
                placeholder={String(USUAL.stopOf)}
                value={draft.stopOf}
                set={(stopOf) => change({ stopOf })}
              />
            )}
            <NativeSelect
              label="Order"
              description="Each key in order of capture; keys in parallel."
              data={ORDERS.map((order) => ({ value: order, label: ORDER_WORDS[order] }))}
              value={draft.order}
              error={errorAt('order')}
              onChange={(event) => {
                const order = ORDERS.find((each) => each === event.currentTarget.value)
                if (order !== undefined) change({ order })
              }}
            />
          </>
        )}
      </div>
      {isSending(act) && (
        <Careful
          draft={draft}
          choose={() => {
            change(CAREFUL)
            // What was pressed is gone then: the focus goes to what it filled in.
            first.current?.focus()
          }}
        />
      )}
      {isSending(act) && <PlanRepair draft={draft} errorAt={errorAt} change={change} />}
    </Stack>
  )
}

function Careful({ draft, choose }: { readonly draft: Draft; readonly choose: () => void }) {
  if (draft.canary !== null || draft.stopPercent !== null) return null
  return (
    <Group gap="xs">
      <Text size="sm">Not sure that the cause is gone?</Text>
      <Anchor component="button" type="button" size="sm" onClick={choose}>
        Try ten first, and stop when more than 20 % of 100 return
      </Anchor>
    </Group>
  )
}

function QueueField({
  queue,
  error,
  change,
}: {
  readonly queue: string
  readonly error: string | undefined
  readonly change: (queue: string) => void
}) {
  const { data } = useQuery(queuesQuery())
  return (
    <Autocomplete
      label="To queue"
      description="Each is put there as a new item. The queue must exist."
      required
      data-autofocus
      data={data?.items.map(({ name }) => name) ?? []}
      value={queue}
      error={error}
      onChange={change}
    />
  )
}

interface OptionalNumberProps {
  readonly label: string
  readonly description: string
  readonly value: number | null
  readonly allowDecimal?: boolean
  /** What is meant where nothing is typed. */
  readonly placeholder?: string
  readonly error?: string | undefined
  readonly field?: RefObject<HTMLInputElement | null>
  readonly set: (value: number | null) => void
}

/** A number that may be left out. What is out of range is left to the server, which says why. */
function OptionalNumber({ value, set, allowDecimal = false, field, ...shown }: OptionalNumberProps) {
  // As typed: "." is the beginning of a number, and "0." of another one.
  const [typed, setTyped] = useState<number | string>(value ?? '')
  return (
    <NumberInput
      {...shown}
      {...(field === undefined ? {} : { ref: field })}
      allowDecimal={allowDecimal}
      allowNegative={false}
      clampBehavior="none"
      hideControls
      value={numberIn(typed) === value ? typed : (value ?? '')}
      onChange={(now) => {
        setTyped(now)
        set(numberIn(now))
      }}
    />
  )
}

const numberIn = (typed: number | string): number | null =>
  typed === '' || !Number.isFinite(Number(typed)) ? null : Number(typed)
