/** Asks before an edit that was not sent is left. */
import { Button, Group, Modal, Text } from '@mantine/core'
import { useBlocker } from '@tanstack/react-router'

export interface LeaveDialogProps {
  readonly isDirty: boolean
  /** True right after it was sent: the state that says so may lag behind. */
  readonly isSent: () => boolean
  readonly drop: () => void
}

export function LeaveDialog({ isDirty, isSent, drop }: LeaveDialogProps) {
  const blocker = useBlocker({
    shouldBlockFn: () => isDirty && !isSent(),
    enableBeforeUnload: () => isDirty && !isSent(),
    withResolver: true,
  })
  const isAsking = blocker.status === 'blocked'
  const stay = () => blocker.reset?.()
  return (
    <Modal
      opened={isAsking}
      onClose={stay}
      title="Leave the edit?"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Text size="sm" mb="md">
        It was not sent. This tab keeps it until you come back, or you throw it away.
      </Text>
      <Group justify="flex-end">
        <Button
          variant="default"
          onClick={() => {
            drop()
            blocker.proceed?.()
          }}
        >
          Throw it away
        </Button>
        <Button variant="default" onClick={() => blocker.proceed?.()}>
          Leave and keep it
        </Button>
        <Button data-autofocus onClick={stay}>
          Stay
        </Button>
      </Group>
    </Modal>
  )
}
