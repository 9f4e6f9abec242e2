#!/bin/sh
# Prints whether the SLURM job of the given number is running, was a success or failed.
#
# The controller knows a job for MinJobAge seconds after its end, the accounting database (if there
# is one) for ever. A job that neither knows has failed, for else it would be waited for for ever; a
# controller that does not answer says nothing about the job, which is therefore taken to run.

answer=$(scontrol -o show job "$1" 2>&1)
state=$(echo "$answer" | sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p')
case $answer in
*"Invalid job id"*)
    state=$(sacct -X -n -P -o State -j "$1" 2>/dev/null | sed -n '1s/\([A-Z_]*\).*/\1/p')
    [ -n "$state" ] || state=FORGOTTEN
    ;;
esac

case $state in
COMPLETED) echo success ;;
BOOT_FAIL | CANCELLED | DEADLINE | FAILED | FORGOTTEN | NODE_FAIL | OUT_OF_MEMORY | PREEMPTED | REVOKED | TIMEOUT)
    echo failed
    ;;
*) echo running ;;
esac
